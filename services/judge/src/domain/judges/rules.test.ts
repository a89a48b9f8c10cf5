import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseJudges } from "@hone/config";
import { Outcome } from "@hone/core";
import { JudgeError } from "../../errors.ts";
import type { JudgedEpisode } from "../judged-episode.ts";
import { makeJudge } from "../registry.ts";

/** An episode of one model call. */
function answered(responseText: string, groundTruth: unknown): JudgedEpisode {
  return {
    outcome: Outcome.completed,
    environmentReturn: 0,
    turns: [
      { promptText: "", responseText: "#### 1 \\boxed{1}", finishReason: "stop", info: {} },
      { promptText: "", responseText, finishReason: "stop", info: {} },
    ],
    row: { dataSource: "", groundTruth, extraInfo: {} },
    metadata: {},
  };
}

async function score(judge: object, episode: JudgedEpisode): Promise<unknown> {
  const parsed = parseJudges([judge]);
  assert.ok(parsed.kind === "judges", JSON.stringify(parsed));
  return (await makeJudge(parsed.judges[0]!))(episode, { signal: new AbortController().signal });
}

describe("the judges that are rules", () => {
  const cases: [judge: object, answer: string, truth: unknown, value: number][] = [
    [{ kind: "exact" }, " yes\n", "yes", 1],
    [{ kind: "exact" }, "Yes", "yes", 0],
    [{ kind: "exact", ignoreCase: true }, "Yes", "yes", 1],
    [{ kind: "exact" }, "yes, it is", "yes", 0],
    [{ kind: "exact", pattern: "<answer>(.*?)</answer>" }, "<answer>no</answer> <answer>7</answer>", 7, 1],
    [{ kind: "exact", pattern: "[0-9]+" }, "7, then 8", "8", 1],
    [{ kind: "exact", pattern: "[0-9]+" }, "none", "8", 0],
    [{ kind: "exact", pattern: "ANSWER (.)", flags: "i" }, "answer 8", "8", 1],
    [{ kind: "regex", pattern: "^<think>.*</think>", flags: "s" }, "<think>\n</think> so", undefined, 1],
    [{ kind: "regex", pattern: "^<think>" }, "so <think>", undefined, 0],
    [{ kind: "gsm8k" }, "#### 72", "72", 1],
    [{ kind: "gsm8k" }, "#### 72.", "72", 0],
    [{ kind: "gsm8k", method: "flexible" }, "#### 72.", 72, 1],
    [{ kind: "math" }, "so \\boxed{.5}", "0.5", 1],
    [{ kind: "math" }, "so it is 0.5", "0.5", 0],
  ];
  for (const [judge, answer, truth, value] of cases) {
    test(`${JSON.stringify(judge)} gives ${value} for ${JSON.stringify(answer)}`, async () => {
      assert.equal(await score(judge, answered(answer, truth)), value);
    });
  }

  for (const kind of ["exact", "gsm8k", "math"]) {
    test(`${kind} fails where the row has no ground truth, and where it is no text`, async () => {
      for (const truth of [undefined, null, ["72"], { value: 72 }]) {
        await assert.rejects(score({ kind }, answered("72", truth)), JudgeError);
      }
    });
  }

  test("a pattern that would match for ever ends in a failure, and the judge goes on", async () => {
    const hopeless = { kind: "regex", pattern: "^(a+)+$" };
    await assert.rejects(score(hopeless, answered(`${"a".repeat(50)}!`, undefined)), /within 1000 ms/);
    assert.equal(await score(hopeless, answered("aaa", undefined)), 1);
  });
});
