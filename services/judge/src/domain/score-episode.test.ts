import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseJudges } from "@hone/config";
import { Outcome } from "@hone/core";
import { FinishReason } from "@hone/rl";
import type { JudgedEpisode } from "./judged-episode.ts";
import { assemblePanel } from "./panel.ts";
import { outcomeOf, scoreEpisode } from "./score-episode.ts";
import { judgeParts } from "./testing.ts";

function turn(info: Record<string, unknown>, responseText = "") {
  return { promptText: "", responseText, finishReason: FinishReason.stop, info };
}

/** The verdict of judges that are listed as in a run file. */
async function verdictOf(judged: JudgedEpisode, judges: readonly object[]) {
  const parsed = parseJudges(judges);
  assert.ok(parsed.kind === "judges");
  const panel = await assemblePanel(parsed.judges, judgeParts());
  return scoreEpisode(judged, panel, { signal: new AbortController().signal });
}

const episode: JudgedEpisode = {
  outcome: Outcome.completed,
  environmentReturn: 0.75,
  roleRewards: {},
  turns: [turn({ isValid: true }), turn({ isValid: false }), turn({ action_is_valid: true }), turn({})],
  row: undefined,
  metadata: {},
};
const both = [
  { kind: "environment", weight: 1 },
  { kind: "format", weight: 0.3 },
];

describe("scoreEpisode()", () => {
  test("says which roles a score is for, and what single roles earned", async () => {
    const roleRewards = { white: 1, black: 0 };
    const judges = [{ kind: "environment" }, { kind: "format", roles: ["white"] }];
    const verdict = await verdictOf({ ...episode, roleRewards }, judges);
    assert.ok(verdict.kind === "scored");
    assert.deepEqual(
      verdict.scores.map(({ roles, roleValues }) => ({ roles, roleValues })),
      [
        { roles: undefined, roleValues: roleRewards },
        { roles: ["white"], roleValues: undefined },
      ],
    );
    const broken = { ...episode, roleRewards: { white: Number.NaN } };
    assert.equal((await verdictOf(broken, judges)).kind, "failed");
  });

  test("sums the environment's return and the share of valid answers by their weights", async () => {
    const verdict = await verdictOf(episode, both);
    assert.ok(verdict.kind === "scored");
    assert.deepEqual(verdict.scores, [
      { judge: "environment", weight: 1, value: 0.75, metrics: {}, turnRewards: [] },
      { judge: "format", weight: 0.3, value: 2 / 3, metrics: {}, turnRewards: [] },
    ]);
    assert.ok(Math.abs(verdict.reward - 0.95) < 1e-12);
  });

  test("does not add the rewards of single turns to the value", async () => {
    const turns = [{ ...turn({}), reward: -0.25 }, turn({}), { ...turn({}), reward: 1 }];
    const verdict = await verdictOf({ ...episode, turns }, [{ kind: "environment", weight: 1 }]);
    assert.ok(verdict.kind === "scored");
    assert.equal(verdict.reward, 0.75);
    assert.deepEqual(verdict.scores[0]?.turnRewards, [
      { turn: 0, value: -0.25 },
      { turn: 2, value: 1 },
    ]);
  });

  test("gives no score to outcomes that say nothing about the agent", async () => {
    for (const outcome of [Outcome.infraFailed, Outcome.cancelled, Outcome.stale]) {
      assert.deepEqual(await verdictOf({ ...episode, outcome }, both), { kind: "passed" });
    }
  });

  test("scores outcomes that the agent caused", async () => {
    for (const outcome of [Outcome.truncated, Outcome.agentFailed, Outcome.timedOut]) {
      assert.equal((await verdictOf({ ...episode, outcome }, both)).kind, "scored");
    }
  });

  test("makes the failure of a judge an infrastructure failure and not a zero", async () => {
    const silent = { ...episode, turns: [turn({})] };
    const verdict = await verdictOf(silent, both);
    assert.ok(verdict.kind === "failed");
    assert.match(verdict.reason, /the judge "format" failed: none of the 1 turns says/);
    assert.equal(outcomeOf(silent, verdict), Outcome.infraFailed);
  });

  test("fails for a return that is not a finite number", async () => {
    assert.equal((await verdictOf({ ...episode, environmentReturn: Number.NaN }, both)).kind, "failed");
  });

  test("fails for a sum of rewards that is not a finite number", async () => {
    const large = [
      { kind: "environment", weight: 1e308 },
      { kind: "format", weight: 1e308 },
    ];
    const verdict = await verdictOf({ ...episode, environmentReturn: 10 }, large);
    assert.ok(verdict.kind === "failed" && /must be finite/.test(verdict.reason));
  });

  test("gives an agent that never answered a format score of 0", async () => {
    const verdict = await verdictOf({ ...episode, turns: [] }, [{ kind: "format", weight: 1 }]);
    assert.ok(verdict.kind === "scored" && verdict.reward === 0);
  });

  test("asks a judge only for rows of its data sources, and fails for a row that no judge is for", async () => {
    const row = { dataSource: "openai/gsm8k", groundTruth: "72", extraInfo: {} };
    const judged = { ...episode, row, turns: [turn({}, "#### 72")] };
    const judges = [
      { kind: "gsm8k", dataSources: ["openai/gsm8k"] },
      { kind: "math", dataSources: ["lighteval/MATH"] },
    ];
    const verdict = await verdictOf(judged, judges);
    assert.ok(verdict.kind === "scored");
    assert.deepEqual(
      verdict.scores.map(({ judge, value }) => [judge, value]),
      [["gsm8k", 1]],
    );
    const other = await verdictOf({ ...judged, row: { ...row, dataSource: "other" } }, judges);
    assert.ok(other.kind === "failed");
    assert.match(other.reason, /no judge of the run is for the row's data_source "other"/);
  });

  test("gives scores the judges' names in the run file, so that two judges of one kind can be distinguished", async () => {
    const row = { dataSource: "", groundTruth: "72", extraInfo: {} };
    const verdict = await verdictOf({ ...episode, row, turns: [turn({}, "it is 72")] }, [
      { kind: "gsm8k", name: "strict" },
      { kind: "gsm8k", name: "flexible", method: "flexible", weight: 0.5 },
    ]);
    assert.ok(verdict.kind === "scored");
    assert.deepEqual(
      verdict.scores.map(({ judge, value }) => [judge, value]),
      [
        ["strict", 0],
        ["flexible", 1],
      ],
    );
    assert.equal(verdict.reward, 0.5);
  });
});
