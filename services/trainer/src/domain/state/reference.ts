/** The reference policy of a run, which is version 0: weights that the engine scores with beside those that it trains. */

import { startVersion } from "@hone/config";
import { diskWait, WaitOwner } from "../report/wait.ts";
import type { RunContext } from "../run/run-context.ts";
import { checkWeights } from "./check-state.ts";
import { readKeptState } from "./kept-states.ts";

/** Stores version 0 as the reference before it is committed, so that every later owner finds it. */
export async function keepReference({
  run,
  engine,
  folders,
  reporter,
}: Pick<RunContext, "run" | "engine" | "folders" | "reporter">): Promise<void> {
  const { reference } = folders;
  await reporter.untilAvailable(diskWait(reference), () =>
    folders.writeReference(run.epoch, (folder) => engine.saveWeights(folder)),
  );
  await engine.loadReference(folders.absolute(reference));
}

/** Loads the reference, whose weights must be those of version 0. */
export async function loadReference(
  context: Pick<RunContext, "run" | "engine" | "folders" | "reporter" | "ledger">,
): Promise<void> {
  const { engine, folders, reporter } = context;
  const folder = folders.absolute(folders.reference);
  const digest = await digestOfVersionZero(context);
  await reporter.untilAvailable(diskWait(folders.reference), () =>
    folders.using(folders.reference, async () => {
      if (digest !== undefined) await checkWeights(folder, digest);
      await engine.loadReference(folder);
    }),
  );
}

/** The digest that version 0 was committed with, by this run or by the one that is replayed. */
async function digestOfVersionZero(
  context: Pick<RunContext, "run" | "folders" | "reporter" | "ledger">,
): Promise<string | undefined> {
  const { run, reporter, ledger } = context;
  if (startVersion(run.config) > 0) return (await readKeptState(context, 0)).digest;
  return reporter.untilAvailable({ text: "the database (version 0)", owner: WaitOwner.database }, () =>
    ledger.stateDigest(run.runId, 0),
  );
}
