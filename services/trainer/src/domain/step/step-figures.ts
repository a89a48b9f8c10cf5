/** The figures of a committed step, from which later steps go on. */

import type { RunReporter } from "../report/run-reporter.ts";
import { WaitOwner } from "../report/wait.ts";
import type { RunRecord } from "../run/run-record.ts";
import type { RunLedger } from "./ledger.ts";

export interface FiguresContext {
  readonly run: Pick<RunRecord, "runId">;
  readonly ledger: Pick<RunLedger, "step">;
  readonly reporter: Pick<RunReporter, "untilAvailable">;
}

/** @returns none where the run has no such version. */
export async function stepFigures(
  { run, ledger, reporter }: FiguresContext,
  version: number,
): Promise<Readonly<Record<string, number>>> {
  const record = await reporter.untilAvailable(
    { text: `the database (the figures of step ${version})`, owner: WaitOwner.database },
    () => ledger.step(run.runId, version),
  );
  return record?.metrics ?? {};
}
