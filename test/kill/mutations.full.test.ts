import assert from "node:assert/strict";
import { test } from "node:test";
import { startKillHarness } from "./kill-case.ts";
import { MUTATION_NAMES, MUTATIONS, type Mutation, mutationEnvironment } from "./mutations.ts";

/* The kill matrix is worth something only if it sees faults: each of these must make it complain, and about the right thing. */

/** A job that is lost is never made up for within this time. */
const DEADLINE_MS = 60_000;

for (const name of MUTATION_NAMES) {
  test(`the kill matrix catches the fault: ${name}`, async () => {
    const { victim, moment, complaint }: Mutation = MUTATIONS[name];
    await using harness = await startKillHarness({ env: mutationEnvironment(name), deadlineMs: DEADLINE_MS });
    await assert.rejects(harness.survives(victim, moment), (error: Error) => {
      assert.match(error.message, complaint);
      return true;
    });
  });
}
