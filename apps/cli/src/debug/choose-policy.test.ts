import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { temporaryFolder } from "@hone/testing";
import { choosePolicy, type PolicyArgs } from "./choose-policy.ts";

const args = (given: Partial<PolicyArgs>): PolicyArgs => ({
  policy: undefined,
  answers: undefined,
  endpoint: undefined,
  model: undefined,
  ...given,
});
const ENDPOINT = { baseUrl: "http://127.0.0.1:1/v1", model: "far" };

describe("choosePolicy()", () => {
  test("uses the start model by default, and the policy that an option implies", async () => {
    assert.deepEqual(await choosePolicy(args({})), {
      kind: "model",
      place: undefined,
      shown: "the start model",
    });
    assert.deepEqual(await choosePolicy(args({ endpoint: ENDPOINT })), {
      kind: "endpoint",
      endpoint: ENDPOINT,
    });
    assert.deepEqual(await choosePolicy(args({ policy: "random_legal" })), {
      kind: "script",
      name: "random_legal",
    });
  });

  test("reads answers from a list of texts, and nothing else", async () => {
    await using folder = await temporaryFolder("answers");
    const file = join(folder.path, "answers.yaml");
    await writeFile(file, "- one\n- two\n");
    assert.deepEqual(await choosePolicy(args({ answers: file })), {
      kind: "answers",
      answers: ["one", "two"],
    });
    await writeFile(file, "one: two");
    await assert.rejects(choosePolicy(args({ answers: file })), /is not a list of texts.*"one"/s);
    await assert.rejects(choosePolicy(args({ answers: join(folder.path, "none") })), /none cannot be read/);
  });

  for (const [what, given, rule] of [
    ["an unknown policy", { policy: "randm" }, /one of model, random, .*did you mean "random"/],
    ["an endpoint without its address", { policy: "endpoint" }, /needs --endpoint/],
    ["the policy answers without its file", { policy: "answers" }, /needs --answers/],
    [
      "an option that belongs to another policy",
      { policy: "random", endpoint: ENDPOINT },
      /does not take --endpoint/,
    ],
  ] as const) {
    test(`refuses ${what}`, () => assert.rejects(choosePolicy(args(given)), rule));
  }
});
