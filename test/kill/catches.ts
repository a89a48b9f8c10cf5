/** Checks that the kill matrix detects a fault. */

import assert from "node:assert/strict";
import { startKillHarness } from "./kill-case.ts";
import { MUTATIONS, type Mutation, type MutationName, mutationEnvironment } from "./mutations.ts";

/** A run takes a few seconds, and one that lost a job does not recover within this time. */
const DEADLINE_MS = 90_000;

/** Runs the case that must fail, on a stack with the fault. @throws when the case succeeds, or fails for another reason. */
export async function catches(name: MutationName): Promise<void> {
  const { victim, moment, complaint }: Mutation = MUTATIONS[name];
  await using harness = await startKillHarness({ env: mutationEnvironment(name), deadlineMs: DEADLINE_MS });
  await assert.rejects(harness.survives(victim, moment), (error: Error) => {
    assert.match(error.message, complaint);
    return true;
  });
}
