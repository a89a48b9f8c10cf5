/**
 * FrozenLake by ROLL's rules.
 *
 * F1: the observation is the map, rows joined by newlines: `P` player, `_` frozen, `O` hole, `G` goal, `X` player
 *     in a hole, `√` player on the goal.
 * F2: reaching the goal ends the episode with reward 1; a hole ends it with 0; every other step gives 0.
 * F3: an invalid answer moves nothing, gives the format penalty, and counts as a step.
 * F4: after `maxSteps` steps the episode is truncated.
 * F5: on slippery ice a move goes in the intended direction or to either side of it, each with a chance of one in three.
 * F6: metrics: success (last), action_is_valid and action_is_effective (mean over the steps).
 */

import type { Environment, EnvironmentInfo, EnvironmentReset, EnvironmentStep } from "@hone/agents";
import { deriveSeed, Random, TerminalError } from "@hone/core";
import { z } from "zod";
import { cellAfter, drawLake, type Lake, MOVES, type Move } from "./lake.ts";
import { formatAnswer, parseAnswer } from "./parse-answer.ts";

export const frozenLakeConfigSchema = z.strictObject({
  /** Number of cells on a side. */
  size: z.number().int().min(2).max(32).default(4),
  /** Whether moves may slip to the side (F5). */
  slippery: z.boolean().default(false),
  /** Probability that a cell is frozen and not a hole. */
  safeProbability: z.number().gt(0).max(1).default(0.8),
  /** Number of steps after which the episode is truncated (F4). */
  maxSteps: z.number().int().min(1).max(10_000).default(10),
  /** Reward of a step with an invalid answer (F3). */
  formatPenalty: z.number().max(0).default(0),
  /** Milliseconds that each step takes, to simulate a slow tool; see `slow-environment.ts`. */
  stepDelayMs: z.number().int().min(0).max(3_600_000).default(0),
  /** Above 0 that time is a mean, and each step draws its own from a log-normal distribution of this sigma. */
  stepDelaySigma: z.number().min(0).max(4).default(0),
});
export type FrozenLakeConfig = z.output<typeof frozenLakeConfigSchema>;

/** In the place of a neighbour where there is none. */
const BEYOND_THE_BORDER = "-";

interface Episode {
  readonly lake: Lake;
  /** Determines the slips; it follows from the seed, as the map does. */
  readonly slips: Random;
  player: number;
  steps: number;
  validSteps: number;
  effectiveSteps: number;
  isOver: boolean;
}

export class FrozenLake implements Environment {
  readonly #config: FrozenLakeConfig;
  #episode: Episode | undefined;

  constructor(config: FrozenLakeConfig) {
    this.#config = config;
  }

  reset(seed: number): EnvironmentReset {
    const { size, safeProbability } = this.#config;
    const lake = drawLake(seed, size, safeProbability);
    this.#episode = {
      lake,
      slips: new Random(deriveSeed(seed, "frozen_lake", "slips")),
      player: lake.start,
      steps: 0,
      validSteps: 0,
      effectiveSteps: 0,
      isOver: false,
    };
    return { observation: render(this.#episode), info: stateInfo(this.#episode) };
  }

  step(answer: string): EnvironmentStep {
    const episode = this.#running();
    const { lake } = episode;
    const { slippery, maxSteps, formatPenalty } = this.#config;
    const move = parseAnswer(answer);
    const before = episode.player;
    episode.steps++;
    if (move !== undefined) {
      episode.validSteps++;
      episode.player = cellAfter(lake, before, slippery ? slip(move, episode.slips) : move);
      if (episode.player !== before) episode.effectiveSteps++;
    }
    const isAtGoal = episode.player === lake.goal;
    const terminated = isAtGoal || lake.holes.has(episode.player);
    const truncated = !terminated && episode.steps >= maxSteps;
    episode.isOver = terminated || truncated;
    return {
      observation: render(episode),
      reward: isAtGoal ? 1 : move === undefined ? formatPenalty : 0,
      terminated,
      truncated,
      info: {
        ...stateInfo(episode),
        action: move ?? null,
        action_is_valid: move !== undefined,
        action_is_effective: episode.player !== before,
        success: isAtGoal,
      },
    };
  }

  metrics(): Readonly<Record<string, number>> {
    const episode = this.#episode;
    if (episode === undefined) return {};
    const steps = Math.max(1, episode.steps);
    return {
      success: episode.player === episode.lake.goal ? 1 : 0,
      action_is_valid: episode.validSteps / steps,
      action_is_effective: episode.effectiveSteps / steps,
    };
  }

  /** Every move that the border does not stop, including moves into holes. */
  legalAnswers(): readonly string[] {
    const { lake, player } = this.#running();
    return MOVES.filter((move) => cellAfter(lake, player, move) !== player).map(formatAnswer);
  }

  #running(): Episode {
    if (this.#episode === undefined || this.#episode.isOver) {
      throw new TerminalError(
        "EPISODE_NOT_RUNNING",
        this.#episode === undefined
          ? "the lake needs a reset before its first step"
          : "the episode is over; reset the lake before the next step",
      );
    }
    return this.#episode;
  }
}

/** The move that is made where `meant` was intended (F5). */
function slip(meant: Move, random: Random): Move {
  const turned = MOVES.indexOf(meant) + random.nextInt(3) - 1;
  return MOVES[(turned + MOVES.length) % MOVES.length]!;
}

/** F1 */
function render({ lake, player }: Episode): string {
  const { size, goal, holes } = lake;
  const rows: string[] = [];
  for (let row = 0; row < size; row++) {
    let text = "";
    for (let column = 0; column < size; column++) {
      const cell = row * size + column;
      if (cell === player) text += holes.has(cell) ? "X" : cell === goal ? "√" : "P";
      else text += symbolOf(lake, cell);
    }
    rows.push(text);
  }
  return rows.join("\n");
}

/** A cell that the player is not on. */
function symbolOf({ holes, goal }: Lake, cell: number): string {
  if (holes.has(cell)) return "O";
  return cell === goal ? "G" : "_";
}

function stateInfo({ lake, player }: Episode): EnvironmentInfo {
  return {
    player_row: Math.floor(player / lake.size),
    player_column: player % lake.size,
    goal_row: Math.floor(lake.goal / lake.size),
    goal_column: lake.goal % lake.size,
    neighbors: MOVES.map((move) => {
      const cell = cellAfter(lake, player, move);
      return cell === player ? BEYOND_THE_BORDER : symbolOf(lake, cell);
    }).join(""),
  };
}
