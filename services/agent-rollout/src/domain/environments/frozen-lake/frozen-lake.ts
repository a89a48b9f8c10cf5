/**
 * FrozenLake by ROLL's rules.
 *
 * F1: the observation is the map, rows joined by newlines: `P` player, `_` frozen, `O` hole, `G` goal, `X` player
 *     in a hole, `√` player on the goal; with blanks around them in AgentJet's preset.
 * F2: reaching the goal ends the episode with reward 1; a hole ends it with 0; every other step gives 0.
 * F3: an action that is no move moves nothing, gives the format penalty, and counts as a step.
 * F4: after `maxSteps` steps the episode is truncated.
 * F5: on slippery ice a move goes in the intended direction or to either side of it, each with a chance of one in three.
 * F6: metrics: success (last), action_is_valid and action_is_effective (mean over the steps).
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
import { deriveSeed, Random } from "@hone/core";
import { z } from "zod";
import { runningEpisode } from "../running-episode.ts";
import { StepTally } from "../step-tally.ts";
import { AGENTJET_HINT, describeLake, LAKE_PRESETS, LAKE_SYMBOLS, type LakeSymbols } from "./description.ts";
import { drawLakeSvg } from "./draw-lake-svg.ts";
import { cellAfter, drawLake, type Lake, MOVES, type Move, moveNamed, moveTowardsGoal } from "./lake.ts";

export const frozenLakeConfigSchema = z.strictObject({
  /** Number of cells on a side. */
  size: z.number().int().min(2).max(32).default(4),
  /** Whether moves may slip to the side (F5). */
  slippery: z.boolean().default(false),
  /** Probability that a cell is frozen and not a hole. */
  safeProbability: z.number().gt(0).max(1).default(0.8),
  /** Number of steps after which the episode is truncated (F4). */
  maxSteps: z.number().int().min(1).max(10_000).default(10),
  /** Reward of a step whose action is no move (F3). */
  formatPenalty: z.number().max(0).default(0),
  /** Whose texts and map the model is shown. */
  preset: z.enum(LAKE_PRESETS).default("roll"),
  /** Milliseconds that each step takes, to simulate a slow tool; see `slow-environment.ts`. */
  stepDelayMs: z.number().int().min(0).max(3_600_000).default(0),
  /** Above 0 that time is a mean, and each step draws its own from a log-normal distribution of this sigma. */
  stepDelaySigma: z.number().min(0).max(4).default(0),
});
export type FrozenLakeConfig = z.output<typeof frozenLakeConfigSchema>;

/** In the place of a neighbour where there is none. */
const BEYOND_THE_BORDER = "-";

/** Where the maps and the slips of a seed come from. */
export interface LakeOrigin {
  lakeOf(seed: number): Lake;
  /** Draws from 0, 1 and 2, of which 1 is the intended direction (F5). */
  slipsOf(seed: number): Pick<Random, "nextInt">;
}

interface Episode {
  readonly lake: Lake;
  readonly slips: Pick<Random, "nextInt">;
  readonly tally: StepTally;
  player: number;
  isOver: boolean;
}

export class FrozenLake implements Environment {
  readonly #config: FrozenLakeConfig;
  readonly #origin: LakeOrigin;
  #episode: Episode | undefined;

  /** @param origin for tests of given maps. @default maps and slips that follow from the seed alone */
  constructor(config: FrozenLakeConfig, origin: LakeOrigin = originOf(config)) {
    this.#config = config;
    this.#origin = origin;
  }

  reset(seed: number): EnvironmentReset {
    const lake = this.#origin.lakeOf(seed);
    this.#episode = {
      lake,
      slips: this.#origin.slipsOf(seed),
      tally: new StepTally(),
      player: lake.start,
      isOver: false,
    };
    return { observation: this.#observe(this.#episode), info: this.#stateInfo(this.#episode, true) };
  }

  step(action: string): EnvironmentStep {
    const episode = this.#running();
    const { lake, tally } = episode;
    const { slippery, maxSteps, formatPenalty } = this.#config;
    const move = moveNamed(action);
    const before = episode.player;
    if (move !== undefined) {
      episode.player = cellAfter(lake, before, slippery ? slip(move, episode.slips) : move);
    }
    const isEffective = episode.player !== before;
    tally.add({ isValid: move !== undefined, isEffective });
    const isAtGoal = episode.player === lake.goal;
    const terminated = isAtGoal || lake.holes.has(episode.player);
    const truncated = !terminated && tally.steps >= maxSteps;
    episode.isOver = terminated || truncated;
    return {
      observation: this.#observe(episode),
      reward: isAtGoal ? 1 : move === undefined ? formatPenalty : 0,
      terminated,
      truncated,
      info: {
        ...this.#stateInfo(episode, isEffective),
        action: move ?? null,
        action_is_valid: move !== undefined,
        action_is_effective: isEffective,
        success: isAtGoal,
      },
    };
  }

  metrics(): Readonly<Record<string, number>> {
    const episode = this.#episode;
    if (episode === undefined) return {};
    return { success: episode.player === episode.lake.goal ? 1 : 0, ...episode.tally.metrics() };
  }

  describe(format?: ActionFormat): EnvironmentDescription {
    return describeLake(this.#config.preset, format);
  }

  /** Every move that the border does not stop, including moves into holes. */
  legalActions(): readonly string[] {
    const { lake, player } = this.#running();
    return MOVES.filter((move) => cellAfter(lake, player, move) !== player);
  }

  /** On ice that slips it is a way that may lead into a hole. */
  expertAction(): string | undefined {
    const { lake, player } = this.#running();
    return moveTowardsGoal(lake, player);
  }

  render(): EnvironmentFrame | undefined {
    if (this.#episode === undefined) return undefined;
    const { lake, player } = this.#episode;
    return { kind: "svg", svg: drawLakeSvg(lake, player) };
  }

  #observe({ lake, player }: Episode): string {
    return observe(lake, player, LAKE_SYMBOLS[this.#config.preset]);
  }

  #stateInfo({ lake, player }: Episode, isEffective: boolean): EnvironmentInfo {
    const hint = this.#config.preset === "agentjet" ? { hint: isEffective ? "" : AGENTJET_HINT } : {};
    return { ...stateInfo(lake, player), ...hint };
  }

  #running(): Episode {
    return runningEpisode(this.#episode, ({ isOver }) => isOver, "the lake");
  }
}

function originOf({ size, safeProbability }: FrozenLakeConfig): LakeOrigin {
  return {
    lakeOf: (seed) => drawLake(seed, size, safeProbability),
    slipsOf: (seed) => new Random(deriveSeed(seed, "frozen_lake", "slips")),
  };
}

/** The move that is made where `meant` was intended (F5). */
function slip(meant: Move, random: Pick<Random, "nextInt">): Move {
  const turned = MOVES.indexOf(meant) + random.nextInt(3) - 1;
  return MOVES[(turned + MOVES.length) % MOVES.length]!;
}

/** F1 */
function observe(lake: Lake, player: number, { cells, padding: [before, after] }: LakeSymbols): string {
  const { size } = lake;
  const rows: string[] = [];
  for (let row = 0; row < size; row++) {
    let text = "";
    for (let column = 0; column < size; column++) {
      const cell = row * size + column;
      text += before + cells[symbolAt(lake, cell, cell === player)] + after;
    }
    rows.push(text);
  }
  return rows.join("\n");
}

/** Index among the symbols of the map. */
function symbolAt({ holes, goal }: Lake, cell: number, hasPlayer: boolean): 0 | 1 | 2 | 3 | 4 | 5 {
  if (holes.has(cell)) return hasPlayer ? 4 : 2;
  if (cell === goal) return hasPlayer ? 5 : 3;
  return hasPlayer ? 0 : 1;
}

function stateInfo(lake: Lake, player: number): EnvironmentInfo {
  const { cells } = LAKE_SYMBOLS.roll;
  return {
    player_row: Math.floor(player / lake.size),
    player_column: player % lake.size,
    goal_row: Math.floor(lake.goal / lake.size),
    goal_column: lake.goal % lake.size,
    neighbors: MOVES.map((move) => {
      const cell = cellAfter(lake, player, move);
      return cell === player ? BEYOND_THE_BORDER : cells[symbolAt(lake, cell, false)];
    }).join(""),
  };
}
