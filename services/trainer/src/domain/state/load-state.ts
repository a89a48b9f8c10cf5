/** Takes the state to go on from, of those that earlier tenures left or that another run kept. */

import { loadCritic } from "../critic/critic-state.ts";
import { loadLearners } from "../learners/learner-state.ts";
import { diskWait } from "../report/wait.ts";
import type { RunContext } from "../run/run-context.ts";
import { type CommittedState, checkState, type ExpectedFiles } from "./check-state.ts";
import { KEPT_RECORD, type KeptState, readKeptState } from "./kept-states.ts";

type StateContext = Pick<RunContext, "engine" | "critic" | "learners" | "folders" | "reporter">;

/** A state and its folder, as the database names it. */
export interface PlacedState extends CommittedState {
  /** Relative to the state folder. */
  readonly folder: string;
}

/**
 * Compares a state with what was committed and gives it to the engines, waiting until the folder can be read.
 * @throws {BrokenStateError} when the files differ from those that were committed.
 */
export async function loadState(
  { engine, critic, learners, folders, reporter }: StateContext,
  state: PlacedState,
  expected: ExpectedFiles,
): Promise<void> {
  const folder = folders.absolute(state.folder);
  await reporter.untilAvailable(diskWait(state.folder), () =>
    folders.using(state.folder, async () => {
      await checkState(folder, state, expected);
      await engine.load(folder);
      await loadCritic({ critic }, folder, state.files);
      await loadLearners(learners, folder, state.files);
    }),
  );
}

/**
 * Gives the engines a version of the run that is replayed.
 * @throws {BrokenKeptStateError | BrokenStateError} when it is not what was kept.
 */
export async function loadKeptState(
  context: StateContext & Pick<RunContext, "run">,
  version: number,
): Promise<KeptState> {
  const kept = await readKeptState(context, version);
  await loadState(context, kept, { hasOptimizer: true, beside: KEPT_RECORD });
  return kept;
}
