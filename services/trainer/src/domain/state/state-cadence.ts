/**
 * Decides which versions are written with the optimizer: all of them where that costs little, every n-th where the state is
 * large, those that are kept for replays, and those after which the stream of episodes would have no room (episode-room.ts).
 *
 * The weights of each version are written in any case, because the replicas load them. Where a version was written without
 * the optimizer, a restart computes its state again: from the last state that has it, by the steps since (see replay.ts).
 *
 * And which versions are evaluated, whose episodes take room as well.
 */

import { isTraining, type RunConfig, startVersion } from "@hone/config";
import type { Recovery } from "../run/run-record.ts";
import type { TrainingEngine } from "../step/training-engine.ts";

/** A state of this size is written in a fraction of a second. */
const SMALL_STATE_BYTES = 256 * 2 ** 20;
/** A restart replays at most one step fewer than this. */
const LARGE_STATE_INTERVAL = 8;

type SizedEngine = Pick<TrainingEngine, "stateBytes">;

/** Whether a version is due to be written with the optimizer. Nobody needs it after the last version. */
export function isWholeStateDue(config: RunConfig, engine: SizedEngine, version: number): boolean {
  if (!isTraining(config)) return false;
  const { steps, stateEvery } = config.trainer;
  const interval = stateInterval(engine, stateEvery);
  if (interval === 1 || isKeptStateDue(config, version)) return true;
  return version < steps && (version % interval === 0 || version === startVersion(config));
}

/** Whether the state of a version is kept, so that a replay can begin with it; none begins after the last version. */
export function isKeptStateDue({ trainer }: Pick<RunConfig, "trainer">, version: number): boolean {
  const { keepStates, steps } = trainer;
  return keepStates > 0 && version % keepStates === 0 && version < steps;
}

/** The number of versions from one state with the optimizer to the next. @param stateEvery the run file's setting */
export function stateInterval(engine: SizedEngine, stateEvery?: number): number {
  return stateEvery ?? (engine.stateBytes <= SMALL_STATE_BYTES ? 1 : LARGE_STATE_INTERVAL);
}

/**
 * Whether a restart at a committed version needs to replay no step.
 * @param recovery the newest state with the optimizer.
 */
export function isReplayFree(config: RunConfig, recovery: Recovery | undefined, version: number): boolean {
  return version >= config.trainer.steps || recovery?.version === version;
}

/** Whether a version is evaluated: the first, the last, and every n-th in between. */
export function isEvaluationDue(config: RunConfig, version: number): boolean {
  if (config.dataset.eval === undefined) return false;
  const { steps, eval: evaluation } = config.trainer;
  const isEnd = version === startVersion(config) || version === steps;
  return isEnd || (evaluation.every > 0 && version % evaluation.every === 0);
}
