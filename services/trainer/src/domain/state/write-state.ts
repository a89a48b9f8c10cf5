/** Writes the engine's state into a folder of the run, and removes the states that nobody needs any more. */

import { diskWait } from "../report/wait.ts";
import type { RunContext } from "../run/run-context.ts";
import type { CommittedState } from "./check-state.ts";
import type { NeededStates } from "./run-folders.ts";
import { digestState } from "./state-files.ts";

/** What of a state is written. */
export interface StateContents {
  /** Whether the optimizer is written, too. */
  readonly isWhole: boolean;
  /** Writes the critic; absent = it does not belong to the state. */
  readonly writeCritic?: ((folder: string) => Promise<unknown>) | undefined;
  /** Writes the run's further policies; absent = they do not belong to the state, as within a warm start. */
  readonly writeLearners?: ((folder: string) => Promise<unknown>) | undefined;
}

/** Writes a state completely or not at all, waiting until the disk takes it. */
export function writeState(
  { engine, folders, reporter }: Pick<RunContext, "engine" | "folders" | "reporter">,
  folder: string,
  { isWhole, writeLearners, writeCritic }: StateContents,
): Promise<CommittedState> {
  return reporter.untilAvailable(diskWait(folder), () =>
    folders.writeWhole(folder, async (unfinished) => {
      const { digest } = await (isWhole ? engine.save(unfinished) : engine.saveWeights(unfinished));
      await writeLearners?.(unfinished);
      await writeCritic?.(unfinished);
      return { digest, files: await digestState(unfinished, digest) };
    }),
  );
}

/** Removes the states that nobody needs, waiting for a folder that can be written. */
export async function removeOldStates(
  { folders, reporter }: Pick<RunContext, "folders" | "reporter">,
  needed: NeededStates,
): Promise<void> {
  await reporter.untilAvailable(diskWait(folders.states), () => folders.removeOldStates(needed));
}
