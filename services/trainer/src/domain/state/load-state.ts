/** What a tenure does with the states that earlier ones left: takes the one to go on from, and removes what nobody needs. */

import { diskWait } from "../report/wait.ts";
import type { RunContext } from "../run/run-context.ts";
import { type CommittedState, checkState } from "./check-state.ts";
import type { NeededStates } from "./run-folders.ts";

type StateContext = Pick<RunContext, "engine" | "folders" | "reporter">;

/** A state, as the database names it. */
export interface PlacedState extends CommittedState {
  /** Relative to the state folder. */
  readonly folder: string;
}

/**
 * Compares a state with what was committed and gives it to the engine, waiting for a folder that can be read.
 * @throws {BrokenStateError} when it is another one.
 */
export async function loadState(
  { engine, folders, reporter }: StateContext,
  state: PlacedState,
  expected: { readonly hasOptimizer: boolean },
): Promise<void> {
  const folder = folders.absolute(state.folder);
  await reporter.untilAvailable(diskWait(state.folder), () =>
    folders.using(state.folder, async () => {
      await checkState(folder, state, expected);
      await engine.load(folder);
    }),
  );
}

/** Removes the states that nobody needs, waiting for a folder that can be written. */
export async function removeOldStates(
  { folders, reporter }: Pick<StateContext, "folders" | "reporter">,
  needed: NeededStates,
): Promise<void> {
  await reporter.untilAvailable(diskWait(folders.states), () => folders.removeOldStates(needed));
}
