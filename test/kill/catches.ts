/** Whether the kill matrix sees a fault. */

import assert from "node:assert/strict";
import { startKillHarness } from "./kill-case.ts";
import { MUTATIONS, type Mutation, type MutationName, mutationEnvironment } from "./mutations.ts";

/** What a lost job holds up is never made up for within this time, and a run takes a few seconds. */
const DEADLINE_MS = 90_000;

/** Does the case that must fail on a stack with the fault in it. @throws when it succeeds, or fails for another reason. */
export async function catches(name: MutationName): Promise<void> {
  const { victim, moment, complaint }: Mutation = MUTATIONS[name];
  await using harness = await startKillHarness({ env: mutationEnvironment(name), deadlineMs: DEADLINE_MS });
  await assert.rejects(harness.survives(victim, moment), (error: Error) => {
    assert.match(error.message, complaint);
    return true;
  });
}
