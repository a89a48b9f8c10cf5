import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { RunSummary } from "./ports.ts";
import { type StackHealth, withOwnersHealth } from "./stack-health.ts";

const RUN: RunSummary = {
  runId: "a-1",
  acceptedAtMs: 1,
  phase: "rollout",
  step: 2,
  totalSteps: 3,
  version: 1,
  waitingFor: "12 of 16 rollouts of step 2",
  waitingOwner: "agent-rollout",
  waitingSinceMs: 50,
  progress: null,
  troubles: null,
  endedAtMs: null,
  endReason: "",
  checkpoint: "",
  unreadRollouts: 0,
};

function health(silent: { bus?: number; trainer?: number; judge?: number }): StackHealth {
  return {
    bus: { silentSinceMs: silent.bus ?? null },
    database: { silentSinceMs: null },
    services: (["trainer", "judge"] as const).map((service) => ({
      service,
      silentSinceMs: silent[service] ?? null,
      instances: 1,
      reasons: [],
    })),
    queues: null,
    dead: { count: 0, lastReason: "", lastSubject: "" },
  };
}

describe("withOwnersHealth()", () => {
  test("leaves a run unchanged while its trainer answers", () => {
    assert.equal(withOwnersHealth(RUN, health({ judge: 70 })), RUN);
  });

  test("says that a run waits for its trainer when the trainer does not answer", () => {
    const { waitingFor, waitingOwner, waitingSinceMs } = withOwnersHealth(RUN, health({ trainer: 70 }));
    assert.deepEqual(
      { waitingFor, waitingOwner, waitingSinceMs },
      { waitingFor: "the trainer, which does not answer", waitingOwner: "trainer", waitingSinceMs: 70 },
    );
  });

  test("says that a run waits for the bus when neither bus nor trainer answers", () => {
    assert.equal(withOwnersHealth(RUN, health({ bus: 60, trainer: 70 })).waitingOwner, "bus");
  });

  test("leaves a run that has ended unchanged", () => {
    const ended = { ...RUN, endedAtMs: 90 };
    assert.equal(withOwnersHealth(ended, health({ trainer: 70 })), ended);
  });
});
