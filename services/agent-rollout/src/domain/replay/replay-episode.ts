/**
 * Plays a recorded episode again, with the same seed and actions, to show its states as frames.
 *
 * P1: frames are given only while every state is the one that was recorded. An environment that was changed, or whose episodes
 *     do not follow from seed and actions alone, comes to other states; then there is a problem and no frame.
 * P2: an environment that draws nothing, or fails to, is shown by its observations.
 * P3: frames have a limit in bytes, and the replay one in time, as environments may be anybody's code. Between two actions rollouts
 *     of the same process go on.
 * P4: it never rejects: what went wrong is its value.
 */

import { setImmediate } from "node:timers/promises";
import { type Environment, type EnvironmentReset, type EnvironmentStep, nameOfState } from "@hone/agents";
import { DeadlineError, deadline, describeError } from "@hone/core";
import { type Drawn, drawFrame } from "./draw-frame.ts";

/** What is recorded of a turn that acted. */
export interface ReplayTurn {
  readonly index: number;
  /** At least one, in order. */
  readonly actions: readonly string[];
  /** Name of the state in which the last of them was taken; empty = not recorded. */
  readonly state: string;
}

export interface RecordedEpisode {
  readonly seed: number;
  readonly turns: readonly ReplayTurn[];
  /** Name of the state after the last action; empty = not recorded. */
  readonly endState: string;
}

/** One state. */
export interface ReplayedFrame {
  /** The turn whose action led to it, with the action; undefined = it is the first state. */
  readonly turn: number | undefined;
  readonly action: string;
  readonly reward: number;
  readonly observation: string;
  /** Undefined = the environment drew nothing (P2). */
  readonly picture: Drawn["picture"];
}

export interface ReplayedEpisode {
  /** None if the states are not those of the record (P1). */
  readonly frames: readonly ReplayedFrame[];
  /** What is missing and why, as sentences; empty = nothing is. */
  readonly problem: string;
}

export interface ReplayLimits {
  /** @default 20_000 */
  readonly deadlineMs?: number;
  /** Most bytes of all observations and pictures together. @default 16 MiB */
  readonly maxBytes?: number;
}

const DEADLINE_MS = 20_000;
/** Ten thousand frames of a small board, or some hundred screens. */
const MAX_BYTES = 16 * 1024 * 1024;
/** An environment that takes longer to close is left to the garbage collector. */
const CLOSE_DEADLINE_MS = 5_000;

/** Plays the episode in a fresh environment and closes it (P4). */
export async function replayEpisode(
  makeEnvironment: () => Environment,
  episode: RecordedEpisode,
  { deadlineMs = DEADLINE_MS, maxBytes = MAX_BYTES }: ReplayLimits = {},
): Promise<ReplayedEpisode> {
  let environment: Environment | undefined;
  try {
    const made = makeEnvironment();
    environment = made;
    return await deadline("the replay", deadlineMs, (signal) => play(made, episode, maxBytes, signal));
  } catch (error) {
    const why =
      error instanceof DeadlineError
        ? `its environment took longer than ${deadlineMs / 1_000} s`
        : reasonOf(error);
    return { frames: [], problem: `The episode could not be played again: ${why}.` };
  } finally {
    await close(environment);
  }
}

async function play(
  environment: Environment,
  { seed, turns, endState }: RecordedEpisode,
  maxBytes: number,
  signal: AbortSignal,
): Promise<ReplayedEpisode> {
  const frames = new Frames(environment, maxBytes);
  const first = await environment.reset(seed);
  signal.throwIfAborted();
  let state = nameOfState(first);
  await frames.add({ turn: undefined, action: "", reward: 0 }, first);
  for (const { index, actions, state: recorded } of turns) {
    for (const [number, action] of actions.entries()) {
      // Only the state before the last action of a turn is recorded.
      const isLast = number === actions.length - 1;
      if (isLast && recorded !== "" && recorded !== state) return otherState(`at turn ${index + 1}`); // P1
      await setImmediate(); // P3
      signal.throwIfAborted();
      let step: EnvironmentStep;
      try {
        step = await environment.step(action);
      } catch (error) {
        signal.throwIfAborted();
        return otherState(`at turn ${index + 1}, where it failed (${reasonOf(error)})`);
      }
      signal.throwIfAborted();
      state = nameOfState(step);
      await frames.add({ turn: index, action, reward: step.reward }, step);
      signal.throwIfAborted();
      if (frames.isFull) return frames.end();
    }
  }
  return endState === "" || endState === state ? frames.end() : otherState("after its last turn"); // P1
}

function otherState(where: string): ReplayedEpisode {
  return {
    frames: [],
    problem: `The episode was played again, and came to another state than the recorded one ${where}: the environment was changed since, or its episodes do not follow from seed and actions alone.`,
  };
}

/** Collects frames up to a limit in bytes (P3). */
class Frames {
  isFull = false;
  readonly #environment: Environment;
  readonly #maxBytes: number;
  readonly #frames: ReplayedFrame[] = [];
  #bytes = 0;
  /** Why the environment could not be drawn; after that it is not asked again. */
  #failure = "";

  constructor(environment: Environment, maxBytes: number) {
    this.#environment = environment;
    this.#maxBytes = maxBytes;
  }

  async add(
    cause: Pick<ReplayedFrame, "turn" | "action" | "reward">,
    { observation }: EnvironmentReset,
  ): Promise<void> {
    const drawn = this.#failure === "" ? await drawFrame(this.#environment) : { bytes: 0 };
    if (drawn.failure !== undefined) this.#failure = drawn.failure;
    this.#bytes += drawn.bytes + Buffer.byteLength(observation);
    this.isFull = this.#bytes > this.#maxBytes;
    if (!this.isFull) this.#frames.push({ ...cause, observation, picture: drawn.picture });
  }

  end(): ReplayedEpisode {
    const problems = [
      this.isFull
        ? `Frames after the first ${this.#frames.length} are left out, as all together have more than ${Math.round(this.#maxBytes / 2 ** 20)} MiB.`
        : "",
      this.#failure === ""
        ? ""
        : `The environment could not be drawn, and is shown by its observations: ${this.#failure}.`,
    ];
    return { frames: this.#frames, problem: problems.filter((each) => each !== "").join(" ") };
  }
}

async function close(environment: Environment | undefined): Promise<void> {
  try {
    await deadline("the environment to close", CLOSE_DEADLINE_MS, async () => environment?.close?.());
  } catch {
    // The frames are there, and nothing else uses this environment.
  }
}

/** The message of an error, to be put into a sentence. */
function reasonOf(error: unknown): string {
  return describeError(error).trim().replace(/\.$/, "");
}
