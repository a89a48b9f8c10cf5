import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { destinationOf } from "./bus-metrics.ts";
import { EventKind, RunControl, ServiceName, subjects, ValidatingService } from "./subjects.ts";

describe("destinationOf()", () => {
  test("is the noun and verb of a subject, without the run, replica, stream or request in it", () => {
    const found = [
      subjects.runRequest(),
      subjects.runControl(RunControl.cancel, "run-1"),
      subjects.validate(ValidatingService.judge),
      subjects.serviceHealth(ServiceName.judge),
      subjects.datasetBatch(),
      subjects.rolloutJob("run-1"),
      subjects.rolloutFinished("run-1"),
      subjects.rolloutScored("run-1"),
      subjects.generate("run-1", "replica-0"),
      subjects.judgeScore(),
      subjects.event("run-1", EventKind.ended),
      subjects.requestRefused(7),
      subjects.dead("JOBS"),
    ].map(destinationOf);
    assert.deepEqual(found, [
      "run.request",
      "run.cancel",
      "judge.validate",
      "judge.health",
      "dataset.batch",
      "rollout.job",
      "rollout.finished",
      "rollout.scored",
      "policy.generate",
      "judge.score",
      "event",
      "event",
      "dead",
    ]);
  });
});
