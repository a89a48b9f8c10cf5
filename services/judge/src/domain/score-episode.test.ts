import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Outcome } from "@hone/core";
import type { JudgedEpisode } from "./judged-episode.ts";
import { outcomeOf, scoreEpisode } from "./score-episode.ts";

const episode: JudgedEpisode = {
  outcome: Outcome.completed,
  environmentReturn: 0.75,
  turns: [
    { info: { isValid: true } },
    { info: { isValid: false } },
    { info: { action_is_valid: true } },
    { info: {} },
  ],
};
const both = [
  { kind: "environment", weight: 1 },
  { kind: "format", weight: 0.3 },
] as const;

describe("scoreEpisode()", () => {
  test("weighs the environment's return and the share of valid answers", () => {
    const verdict = scoreEpisode(episode, both);
    assert.ok(verdict.kind === "scored");
    assert.deepEqual(verdict.scores, [
      { judge: "environment", weight: 1, value: 0.75 },
      { judge: "format", weight: 0.3, value: 2 / 3 },
    ]);
    assert.ok(Math.abs(verdict.reward - 0.95) < 1e-12);
  });

  test("passes what says nothing about the agent on without a score", () => {
    for (const outcome of [Outcome.infraFailed, Outcome.cancelled, Outcome.stale]) {
      assert.deepEqual(scoreEpisode({ ...episode, outcome }, both), { kind: "passed" });
    }
  });

  test("scores what the agent brought on itself", () => {
    for (const outcome of [Outcome.truncated, Outcome.agentFailed, Outcome.timedOut]) {
      assert.equal(scoreEpisode({ ...episode, outcome }, both).kind, "scored");
    }
  });

  test("turns the failure of a judge into an infrastructure failure, never into a zero", () => {
    const silent = { ...episode, turns: [{ info: {} }] };
    const verdict = scoreEpisode(silent, both);
    assert.ok(verdict.kind === "failed");
    assert.match(verdict.reason, /the judge "format" failed: Cannot judge the format/);
    assert.equal(outcomeOf(silent, verdict), Outcome.infraFailed);
  });

  test("refuses a return that is no finite number", () => {
    assert.equal(scoreEpisode({ ...episode, environmentReturn: Number.NaN }, both).kind, "failed");
  });

  test("refuses a sum of rewards that is no finite number", () => {
    const large = [
      { kind: "environment", weight: 1e308 },
      { kind: "format", weight: 1e308 },
    ] as const;
    const verdict = scoreEpisode({ ...episode, environmentReturn: 10 }, large);
    assert.ok(verdict.kind === "failed" && /must be finite/.test(verdict.reason));
  });

  test("gives an agent that never answered a format score of 0", () => {
    const verdict = scoreEpisode({ ...episode, turns: [] }, [{ kind: "format", weight: 1 }]);
    assert.ok(verdict.kind === "scored" && verdict.reward === 0);
  });
});
