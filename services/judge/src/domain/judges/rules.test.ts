import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { JudgeError } from "../../errors.ts";
import { answered, judgementOf } from "../testing.ts";

/** The judge's value for an episode whose second and last answer is `answer`. */
async function score(judge: object, answer: string, truth: unknown): Promise<number> {
  return (await judgementOf(judge, answered(["#### 1 \\boxed{1}", answer], truth))).value;
}

const WEATHER = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer" } },
  required: ["city", "days"],
};

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
    [{ kind: "gsm8k", method: "flexible" }, "#### 72.", 72, 0],
    [{ kind: "gsm8k", method: "last_number" }, "#### 72.", 72, 1],
    [{ kind: "math" }, "so \\boxed{.5}", "0.5", 1],
    [{ kind: "math" }, "so it is 0.5", "0.5", 0],
    [{ kind: "math_dapo" }, "Answer: \\boxed{72}", "72", 1],
    [{ kind: "math_dapo" }, "\\boxed{72}", "72", 1],
    [{ kind: "math_dapo" }, "it is 72", "72", -1],
    [{ kind: "json_schema", schema: WEATHER }, '{"city":"Bern","days":3}', undefined, 1],
    [{ kind: "json_schema", schema: WEATHER }, 'So:\n```json\n{"city":"Bern","days":3}\n```\n', undefined, 1],
    [{ kind: "json_schema", schema: WEATHER }, '{"city":"Bern","days":"3"}', undefined, 0],
    [{ kind: "json_schema", schema: WEATHER }, '{"city":"Bern"', undefined, 0],
    [{ kind: "degenerate" }, "A sound answer of a few words.", undefined, 0],
    [{ kind: "degenerate" }, "and then we go ".repeat(12), undefined, -1],
    [{ kind: "degenerate" }, "ha".repeat(120), undefined, -1],
    [{ kind: "degenerate" }, `${"-".repeat(120)}\nA table`, undefined, 0],
    [{ kind: "degenerate" }, "fine<|im_start|>user", undefined, -1],
    [{ kind: "degenerate", checks: ["loops"] }, "fine<|im_start|>user", undefined, 0],
    [{ kind: "degenerate", checks: ["script"] }, "Straße, naïve, 12 × 3", undefined, 0],
    [{ kind: "degenerate", checks: ["script"] }, "the answer is 答案是七十二", undefined, -1],
    [{ kind: "degenerate", checks: ["script"], scripts: ["Latin", "Han"] }, "答案 is 72", undefined, 0],
  ];
  for (const [judge, answer, truth, value] of cases) {
    test(`${JSON.stringify(judge)} gives ${value} for ${JSON.stringify(answer)}`, async () => {
      assert.equal(await score(judge, answer, truth), value);
    });
  }

  for (const kind of ["exact", "gsm8k", "math", "math_dapo"]) {
    test(`${kind} fails if the row has no ground truth or one that is not a text`, async () => {
      for (const truth of [undefined, null, ["72"], { value: 72 }]) {
        await assert.rejects(score({ kind }, "72", truth), JudgeError);
      }
    });
  }

  test("regex fails for a pattern that takes too long, and works again for the next answer", async () => {
    const hopeless = { kind: "regex", pattern: "^(a+)+$" };
    await assert.rejects(score(hopeless, `${"a".repeat(50)}!`, undefined), /takes longer than 1000 ms/);
    assert.equal(await score(hopeless, "aaa", undefined), 1);
  });

  test("degenerate gives a metric for each check over all turns", async () => {
    const episode = answered(["<s>", "fine"]);
    const turns = [...episode.turns, { ...episode.turns[1]!, info: { invalidToolCalls: ["{"] } }];
    const checks = ["loops", "control_tokens", "tool_calls"];
    assert.deepEqual((await judgementOf({ kind: "degenerate", checks }, { ...episode, turns })).metrics, {
      loops: 0,
      control_tokens: 1,
      tool_calls: 1,
    });
  });

  test("math_dapo gives its accuracy as a metric", async () => {
    assert.deepEqual((await judgementOf({ kind: "math_dapo" }, answered("Answer: 3", "4"))).metrics, {
      acc: 0,
    });
  });
});
