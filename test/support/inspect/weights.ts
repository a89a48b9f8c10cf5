/** The weights that runs made, by their digests. */

import assert from "node:assert/strict";
import { runToEnd } from "../follow.ts";
import type { TestStack } from "../stack.ts";

/** Reads the SHA-256 of the weights of every committed version of a run, version 0 first. */
export async function weightDigests(
  { sql }: Pick<TestStack, "sql">,
  runId: string,
): Promise<readonly string[]> {
  const rows = await sql<{ state_digest: string }[]>`
    select state_digest from trainer.steps where run_id = ${runId} order by version`;
  return rows.map(({ state_digest }) => state_digest);
}

/** Trains the kept rollouts of a run again, and fails unless every version has the same weights. */
export async function assertRepeatable(
  stack: TestStack,
  run: { readonly name: string; readonly trainer: object },
  runId: string,
  deadlineMs: number,
): Promise<void> {
  const trainer = { ...run.trainer, keepRollouts: false };
  const again = { ...run, name: `${run.name}-again`, trainer, replay: { run: runId } };
  const replay = await runToEnd(stack, again, { deadlineMs });
  assert.deepEqual(await weightDigests(stack, replay.runId), await weightDigests(stack, runId));
}
