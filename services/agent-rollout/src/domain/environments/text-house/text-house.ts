/**
 * A house in text: a task of household work that takes many steps, in a world of which the player sees a part at a time.
 *
 * H1: the first observation names the rooms, describes the player's room and gives the task; later ones tell the result of the
 *     last action. With `showActions` a last line lists the possible commands, but for the end of the episode.
 * H2: the step that solves the task ends the episode with reward 1. Each subgoal before it gives `subgoalReward` when it is
 *     first reached. Every other step gives 0, but for the empty action, which gives `formatPenalty`.
 * H3: every step counts, whether its action is possible or not; after `maxSteps` steps the episode is truncated.
 * H4: an action is valid if it was possible, and effective if it changed the state: to look is valid and not effective.
 * H5: one who knows the house can solve the task in `minSolutionSteps` to `maxSteps` steps, see `generator.ts`.
 * H6: metrics: success, subgoals (reached ones by all), action_is_valid and action_is_effective (mean over the steps).
 */

import { hash } from "node:crypto";
import type {
  ActionFormat,
  Environment,
  EnvironmentDescription,
  EnvironmentInfo,
  EnvironmentReset,
  EnvironmentStep,
} from "@hone/agents";
import { z } from "zod";
import { runningEpisode } from "../running-episode.ts";
import { StepTally } from "../step-tally.ts";
import { commandOf, parseCommand } from "./commands.ts";
import { describeHouse } from "./description.ts";
import { drawStart, type Start } from "./generator.ts";
import { type HouseState, stateKey } from "./house.ts";
import { legalActions } from "./legal-actions.ts";
import { ROOM_KINDS } from "./lexicon.ts";
import { type Action, applyAction } from "./rules.ts";
import { solve } from "./solver.ts";
import { type Subgoal, subgoalsOf, TASK_KINDS, TaskKind } from "./tasks.ts";
import {
  availableActions,
  carryingText,
  introduction,
  NOT_UNDERSTOOD,
  resultText,
  TASK_DONE,
  taskText,
} from "./texts.ts";

const MAX_LOCKED_DOORS = 4;
/** A locked door for this many rooms, unless the configuration says another number. */
const ROOMS_PER_LOCK = 3;

export const textHouseConfigSchema = z
  .strictObject({
    /** Number of rooms; one of them is the kitchen. */
    rooms: z.number().int().min(1).max(Object.keys(ROOM_KINDS).length).default(3),
    /** Number of objects that can be carried, without keys. */
    objects: z.number().int().min(2).max(60).default(10),
    /** Number of locked doors, each with a key somewhere; the task `unlock` always has one. @default a third of `rooms` */
    lockedDoors: z.number().int().min(0).max(MAX_LOCKED_DOORS).optional(),
    /** Kinds of tasks, all equally likely. @default all that are possible */
    tasks: z
      .array(z.enum(TASK_KINDS))
      .min(1)
      .refine((kinds) => new Set(kinds).size === kinds.length, "kinds of tasks that are not repeated")
      .optional(),
    /** Number of steps after which the episode is truncated (H3). */
    maxSteps: z.number().int().min(4).max(10_000).default(30),
    /** Only tasks that take one who knows the house at least this many steps, for long horizons (H5). */
    minSolutionSteps: z.number().int().min(1).max(60).default(1),
    /** Reward of a step whose action is empty, as where the model's answer held none (H2). */
    formatPenalty: z.number().max(0).default(0),
    /** Reward of each subgoal before the solution, such as that the object was found, taken or cleaned (H2). */
    subgoalReward: z.number().min(0).max(1).default(0),
    /** Whether observations list the possible commands (H1). */
    showActions: z.boolean().default(true),
  })
  .refine(({ minSolutionSteps, maxSteps }) => minSolutionSteps <= maxSteps, {
    path: ["minSolutionSteps"],
    message: "no more than maxSteps",
  })
  .refine(({ rooms, lockedDoors = 0 }) => lockedDoors < rooms, {
    path: ["lockedDoors"],
    message: "fewer locked doors than rooms",
  })
  .refine(({ rooms, tasks = [] }) => rooms > 1 || !tasks.includes(TaskKind.unlock), {
    path: ["tasks"],
    message: "kinds of tasks without unlock, as a single room has no doors",
  });
export type TextHouseConfig = z.output<typeof textHouseConfigSchema>;

interface Episode extends Start {
  readonly tally: StepTally;
  readonly subgoals: readonly Subgoal[];
  /** Names of those that were reached. */
  readonly reached: Set<Subgoal["name"]>;
  current: HouseState;
  /** Sum of the rewards. */
  score: number;
  isOver: boolean;
}

export class TextHouse implements Environment {
  readonly #config: TextHouseConfig;
  #episode: Episode | undefined;

  constructor(config: TextHouseConfig) {
    this.#config = config;
  }

  reset(seed: number): EnvironmentReset {
    const { rooms, objects, minSolutionSteps, maxSteps } = this.#config;
    const {
      lockedDoors = Math.min(MAX_LOCKED_DOORS, Math.floor(rooms / ROOMS_PER_LOCK)),
      tasks = TASK_KINDS.filter((kind) => rooms > 1 || kind !== TaskKind.unlock),
    } = this.#config;
    const start = drawStart(seed, { rooms, objects, lockedDoors, tasks, minSolutionSteps, maxSteps });
    const episode: Episode = {
      ...start,
      tally: new StepTally(),
      subgoals: subgoalsOf(start.task),
      reached: new Set(),
      current: start.state,
      score: 0,
      isOver: false,
    };
    this.#episode = episode;
    const { house, state, task } = start;
    return {
      observation: this.#shown(episode, introduction(house, state, task)),
      info: this.#stateInfo(episode),
    };
  }

  step(action: string): EnvironmentStep {
    const episode = this.#running();
    const { house, tally, reached, current: before } = episode;
    const { maxSteps, formatPenalty, subgoalReward } = this.#config;
    const command = parseCommand(house, before, action);
    const outcome = command === undefined ? undefined : applyAction(house, before, command);
    episode.current = outcome?.state ?? before;
    const isValid = outcome !== undefined && outcome.refusal === undefined;
    const isEffective = episode.current !== before;
    tally.add({ isValid, isEffective });
    const numNew = isEffective ? addReached(episode) : 0;
    const terminated = reached.has("solved");
    const truncated = !terminated && tally.steps >= maxSteps;
    episode.isOver = terminated || truncated;
    const penalty = action.trim() === "" ? formatPenalty : 0;
    const reward = terminated ? 1 + (numNew - 1) * subgoalReward : numNew * subgoalReward + penalty; // H2
    episode.score += reward;
    const result =
      command === undefined || outcome === undefined
        ? NOT_UNDERSTOOD
        : resultText(house, before, command, outcome);
    return {
      observation: this.#shown(episode, terminated ? `${result} ${TASK_DONE}` : result),
      reward,
      terminated,
      truncated,
      info: {
        ...this.#stateInfo(episode),
        action: command === undefined ? null : commandOf(house, command),
        action_is_valid: isValid,
        action_is_effective: isEffective,
        success: terminated,
      },
    };
  }

  metrics(): Readonly<Record<string, number>> {
    const episode = this.#episode;
    if (episode === undefined) return {};
    return {
      success: episode.reached.has("solved") ? 1 : 0,
      subgoals: shareReached(episode),
      ...episode.tally.metrics(),
    };
  }

  describe(format?: ActionFormat): EnvironmentDescription {
    return describeHouse(format);
  }

  legalActions(): readonly string[] {
    return commandsIn(this.#running());
  }

  /** Commands that solve the task from the present state, for demonstrations. */
  solution(): readonly string[] {
    const { house, task, current } = this.#running();
    const plan = solve(house, task, current);
    if (plan === undefined) throw new TypeError("a house was left without a solution");
    return plan.map((action) => commandOf(house, action));
  }

  expertAction(): string | undefined {
    return this.solution()[0];
  }

  #shown(episode: Episode, text: string): string {
    if (!this.#config.showActions || episode.isOver) return text;
    return `${text}\n${availableActions(commandsIn(episode))}`;
  }

  #stateInfo(episode: Episode): EnvironmentInfo {
    const { house, task, current, solution, score, tally } = episode;
    return {
      room: current.room,
      place: current.place ?? "none",
      carrying: carryingText(house, current),
      task: taskText(task),
      task_kind: task.kind,
      score,
      subgoals: shareReached(episode),
      steps_left: this.#config.maxSteps - tally.steps,
      solution_steps: solution.length,
      state: hash("sha256", stateKey(current), "hex").slice(0, STATE_DIGITS),
    };
  }

  #running(): Episode {
    return runningEpisode(this.#episode, ({ isOver }) => isOver, "the house");
  }
}

/** Hexadecimal digits of the names of states, which are compared within a group of rollouts. */
const STATE_DIGITS = 16;

/** Notes which subgoals are reached for the first time, and returns how many. */
function addReached({ house, subgoals, reached, current }: Episode): number {
  const before = reached.size;
  for (const { name, isReached } of subgoals) {
    if (!reached.has(name) && isReached(house, current)) reached.add(name);
  }
  return reached.size - before;
}

function shareReached({ subgoals, reached }: Episode): number {
  return reached.size / subgoals.length;
}

function commandsIn({ house, current }: Episode): readonly string[] {
  return legalActions(house, current).map((action: Action) => commandOf(house, action));
}
