/**
 * Sokoban by ROLL's rules, which are those of gym_sokoban.
 *
 * K1: the observation is the room, rows joined by newlines: `#` wall, `_` empty, `O` target, `√` box on target, `X` box,
 *     `P` player, `S` player on target, or other symbols.
 * K2: a move steps to a free cell, or pushes the box that stands there if the cell behind it is free. Boxes are never pulled.
 * K3: every step gives -0.1, with 1 more when a box comes onto a target, 1 less when one leaves it, and 10 more when all
 *     boxes are on targets, which ends the episode.
 * K4: an action that is no move is a step that moves nothing and gives the format penalty besides.
 * K5: after `maxSteps` steps the episode is truncated.
 * K6: metrics: success (last), action_is_valid and action_is_effective (mean over the steps). A move is effective when the
 *     player's place has changed.
 */

import type {
  ActionFormat,
  Environment,
  EnvironmentDescription,
  EnvironmentFrame,
  EnvironmentInfo,
  EnvironmentReset,
  EnvironmentStep,
} from "@hone/agents";
import { z } from "zod";
import { runningEpisode } from "../running-episode.ts";
import { StepTally } from "../step-tally.ts";
import { describeSokoban } from "./description.ts";
import { drawRoomSvg } from "./draw-room-svg.ts";
import { drawRoom } from "./rooms/draw-room.ts";
import { Ground, MOVES, moveNamed, offsetsOf, type Room, targetsOf } from "./rooms/room.ts";
import { solveRoom } from "./rooms/solve-room.ts";
import { type SokobanSymbols, symbolsOf, symbolsSchema } from "./symbols.ts";

type SokobanSize = number | readonly [rows: number, columns: number];

const sideSchema = z.number().int().min(3).max(32);

export const sokobanConfigSchema = z
  .strictObject({
    /** Cells on a side with its walls, or `[rows, columns]`; ROLL's `dim_room`. */
    size: z
      .union(
        [sideSchema, z.tuple([sideSchema, sideSchema])],
        "a number of cells from 3 to 32, or two of them as [rows, columns]",
      )
      .default(6),
    /** Number of boxes, and of targets; ROLL's `num_boxes`. */
    boxes: z.number().int().min(1).max(16).default(1),
    /** Number of steps after which the episode is truncated (K5). */
    maxSteps: z.number().int().min(1).max(10_000).default(10),
    /** Reward of a step whose action is no move, besides that of a step (K4). */
    formatPenalty: z.number().max(0).default(0),
    /** How far boxes are taken off their targets when a room is drawn: in up to this number of moves minus two. */
    searchDepth: z.number().int().min(3).max(1_000).default(300),
    /** How the room is drawn: `roll`, `different_grid_vocab`, or a symbol for each kind of cell (K1). */
    symbols: symbolsSchema.default("roll"),
  })
  .refine(({ size }) => Math.max(...sidesOf(size)) >= 5, {
    path: ["size"],
    error: "at least 5 in one direction, where a box, its target and the player have space in a line",
  })
  .refine(({ size, boxes }) => boxes + 2 <= numInnerCells(size), {
    path: ["boxes"],
    error: "at most the number of cells within the walls minus 2",
  })
  .refine(({ boxes, searchDepth }) => searchDepth >= boxes + 2, {
    path: ["searchDepth"],
    error: "at least the number of boxes plus 2, so that each box is moved once",
  });
export type SokobanConfig = z.output<typeof sokobanConfigSchema>;

/** K3 */
const STEP_REWARD = -0.1;
const BOX_ON_TARGET_REWARD = 1;
const BOX_OFF_TARGET_REWARD = -1;
const SOLVED_REWARD = 10;

interface Episode {
  readonly room: Room;
  readonly offsets: readonly number[];
  /** 1 for each cell with a box. */
  readonly hasBox: Uint8Array;
  readonly targets: readonly number[];
  readonly tally: StepTally;
  player: number;
  boxesOnTarget: number;
  isOver: boolean;
}

export class Sokoban implements Environment {
  readonly #config: SokobanConfig;
  readonly #symbols: SokobanSymbols;
  readonly #roomOf: (seed: number) => Room;
  #episode: Episode | undefined;

  /** @param roomOf for tests in given rooms. @default rooms that follow from the seed alone */
  constructor(config: SokobanConfig, roomOf: (seed: number) => Room = roomsOf(config)) {
    this.#config = config;
    this.#symbols = symbolsOf(config.symbols);
    this.#roomOf = roomOf;
  }

  reset(seed: number): EnvironmentReset {
    const episode = beginIn(this.#roomOf(seed));
    this.#episode = episode;
    return { observation: this.#observe(episode), info: this.#stateInfo(episode) };
  }

  step(action: string): EnvironmentStep {
    const episode = this.#running();
    const { tally } = episode;
    const move = moveNamed(action);
    const onTargetBefore = episode.boxesOnTarget;
    const isEffective = move !== undefined && movePlayer(episode, episode.offsets[MOVES.indexOf(move)]!);
    tally.add({ isValid: move !== undefined, isEffective });
    const success = isSolved(episode);
    const truncated = !success && tally.steps >= this.#config.maxSteps;
    episode.isOver = success || truncated;
    // The terms are added in ROLL's order, so that the sums are the same to the last bit.
    let reward = STEP_REWARD;
    if (episode.boxesOnTarget > onTargetBefore) reward += BOX_ON_TARGET_REWARD;
    if (episode.boxesOnTarget < onTargetBefore) reward += BOX_OFF_TARGET_REWARD;
    if (success) reward += SOLVED_REWARD;
    if (move === undefined) reward += this.#config.formatPenalty;
    return {
      observation: this.#observe(episode),
      reward,
      terminated: success,
      truncated,
      info: {
        ...this.#stateInfo(episode),
        action: move ?? null,
        action_is_valid: move !== undefined,
        action_is_effective: isEffective,
        success,
      },
    };
  }

  metrics(): Readonly<Record<string, number>> {
    const episode = this.#episode;
    if (episode === undefined) return {};
    return { success: isSolved(episode) ? 1 : 0, ...episode.tally.metrics() };
  }

  describe(format?: ActionFormat): EnvironmentDescription {
    return describeSokoban(this.#symbols, this.#config.boxes, format);
  }

  /** The moves that change something, including pushes after which the room cannot be solved any more. */
  legalActions(): readonly string[] {
    const episode = this.#running();
    return MOVES.filter((_move, number) => canMove(episode, episode.offsets[number]!));
  }

  /** It takes a search of the room at every step: meant for rooms with a few boxes. */
  expertAction(): string | undefined {
    const { room, hasBox, player } = this.#running();
    const boxes = [...hasBox.keys()].filter((cell) => hasBox[cell] === 1);
    return solveRoom({ ...room, boxes, player })?.[0];
  }

  render(): EnvironmentFrame | undefined {
    const episode = this.#episode;
    if (episode === undefined) return undefined;
    const { room, targets, boxesOnTarget, player } = episode;
    const svg = drawRoomSvg({
      rows: room.rows,
      columns: room.columns,
      numBoxes: targets.length,
      boxesOnTarget,
      kindAt: (cell) => kindAt(episode, cell, cell === player),
    });
    return { kind: "svg", svg };
  }

  /** K1 */
  #observe(episode: Episode): string {
    const { rows, columns } = episode.room;
    let text = "";
    for (let cell = 0; cell < rows * columns; cell++) {
      if (cell > 0 && cell % columns === 0) text += "\n";
      text += this.#symbols[kindAt(episode, cell, cell === episode.player)];
    }
    return text;
  }

  #stateInfo(episode: Episode): EnvironmentInfo {
    const { room, offsets, hasBox, targets, player } = episode;
    const { columns } = room;
    const neighbors = offsets.map((offset) => this.#symbols[kindAt(episode, player + offset, false)]);
    const box = targets.length === 1 ? hasBox.indexOf(1) : undefined;
    return {
      player_row: Math.floor(player / columns),
      player_column: player % columns,
      neighbors: neighbors.join(""),
      boxes_on_target: episode.boxesOnTarget,
      ...(box !== undefined && {
        box_row: Math.floor(box / columns),
        box_column: box % columns,
        target_row: Math.floor(targets[0]! / columns),
        target_column: targets[0]! % columns,
      }),
    };
  }

  #running(): Episode {
    return runningEpisode(this.#episode, ({ isOver }) => isOver, "Sokoban");
  }
}

function roomsOf({ size, boxes, searchDepth }: SokobanConfig): (seed: number) => Room {
  const [rows, columns] = sidesOf(size);
  return (seed) => drawRoom(seed, { rows, columns, boxes, searchDepth });
}

function sidesOf(size: SokobanSize): readonly [rows: number, columns: number] {
  return typeof size === "number" ? [size, size] : size;
}

function numInnerCells(size: SokobanSize): number {
  const [rows, columns] = sidesOf(size);
  return (rows - 2) * (columns - 2);
}

function beginIn(room: Room): Episode {
  const hasBox = new Uint8Array(room.ground.length);
  for (const box of room.boxes) hasBox[box] = 1;
  const targets = targetsOf(room);
  return {
    room,
    offsets: offsetsOf(room),
    hasBox,
    targets,
    tally: new StepTally(),
    player: room.player,
    boxesOnTarget: targets.filter((target) => hasBox[target] === 1).length,
    isOver: false,
  };
}

/** K2 */
function canMove({ room: { ground }, hasBox, player }: Episode, offset: number): boolean {
  const to = player + offset;
  if (ground[to] === Ground.wall) return false;
  const behind = to + offset;
  return hasBox[to] === 0 || (ground[behind] !== Ground.wall && hasBox[behind] === 0);
}

/** K2. @returns whether the player's place has changed */
function movePlayer(episode: Episode, offset: number): boolean {
  if (!canMove(episode, offset)) return false;
  const { hasBox, room } = episode;
  const to = episode.player + offset;
  if (hasBox[to] === 1) {
    hasBox[to] = 0;
    hasBox[to + offset] = 1;
    if (room.ground[to] === Ground.target) episode.boxesOnTarget--;
    if (room.ground[to + offset] === Ground.target) episode.boxesOnTarget++;
  }
  episode.player = to;
  return true;
}

function isSolved({ boxesOnTarget, targets }: Episode): boolean {
  return boxesOnTarget === targets.length;
}

function kindAt({ room, hasBox }: Episode, cell: number, hasPlayer: boolean): keyof SokobanSymbols {
  const ground = room.ground[cell];
  if (ground === Ground.wall) return "wall";
  const isTarget = ground === Ground.target;
  if (hasPlayer) return isTarget ? "playerOnTarget" : "player";
  if (hasBox[cell] === 1) return isTarget ? "boxOnTarget" : "box";
  return isTarget ? "target" : "empty";
}
