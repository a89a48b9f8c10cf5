import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { canonicalJson } from "./canonical-json.ts";
import { ChainCheck, type ChainRow, digestsOf, type StepContent } from "./chain.ts";
import { rolloutDigests } from "./rollout-digests.ts";
import { settingsDigest } from "./settings.ts";

/** A chain of four rows. */
function chain(firstVersion = 0): ChainRow[] {
  const rows: ChainRow[] = [];
  for (let version = firstVersion; version < firstVersion + 4; version++) {
    const content: StepContent = {
      version,
      settings: "s",
      tokenizer: "t",
      arithmetic: "two workers",
      before: version === 0 ? "" : `weights-${version - 1}`,
      after: `weights-${version}`,
      trained: [],
      leftOut: [{ slot: "train.1.0.0", outcome: "infra_failed", why: "outcome" }],
    };
    const [contentJson, restJson] = [
      canonicalJson(content),
      canonicalJson({ epoch: 1, metrics: { loss: 0.5 } }),
    ];
    const digests = digestsOf(contentJson, restJson, rows.at(-1)?.row ?? "");
    rows.push({ version, contentJson, restJson, ...digests });
  }
  return rows;
}

function checked(rows: readonly ChainRow[]) {
  const check = new ChainCheck();
  for (const row of rows) check.add(row);
  return check.result();
}

/** The rows with one of them changed and, where `isDigested`, with digests that fit what it says. */
function changed(at: number, change: (row: ChainRow) => Partial<ChainRow>, isDigested = false): ChainRow[] {
  return chain().map((row, index) => {
    if (index !== at) return row;
    const altered = { ...row, ...change(row) };
    return isDigested
      ? { ...altered, ...digestsOf(altered.contentJson, altered.restJson, altered.previous) }
      : altered;
  });
}

const WITHOUT_CHAIN = { format: 0, previous: "", content: "", row: "", contentJson: "", restJson: "" };

describe("a chain of rows", () => {
  test("verifies untouched, and its head is the digest of its last row", () => {
    const rows = chain();
    assert.deepEqual(checked(rows), { checked: 4, unchained: [], first: undefined, head: rows.at(-1)!.row });
  });

  const textsWith = (text: string, found: string, put: string) => text.replace(found, put);
  const CASES: readonly [string, readonly ChainRow[], number, RegExp][] = [
    [
      "what a step did was changed",
      changed(2, ({ contentJson }) => ({ contentJson: textsWith(contentJson, "infra_failed", "timed_out") })),
      2,
      /what the row says of the step is not what was committed/,
    ],
    [
      "its figures were changed",
      changed(2, ({ restJson }) => ({ restJson: textsWith(restJson, "0.5", "0.4") })),
      2,
      /not the one that was committed/,
    ],
    [
      "a row was changed and digested again",
      changed(2, ({ restJson }) => ({ restJson: textsWith(restJson, "0.5", "0.4") }), true),
      3,
      /does not follow the row of version 2/,
    ],
    [
      "a row was removed",
      chain().filter(({ version }) => version !== 2),
      3,
      /the row after version 1 is missing/,
    ],
    ["the first rows were removed", chain().slice(2), 2, /the rows before it are missing/],
    [
      "a row of another version stands in its place",
      chain().map((row, at, all) => (at === 2 ? { ...all[1]!, version: 2 } : row)),
      2,
      /says that it is of version 1/,
    ],
    [
      "a step began with other weights, all digests being right",
      rebuilt((content) => (content.version === 2 ? { ...content, before: "others" } : content)),
      2,
      /began with other weights than those that version 1 ended with/,
    ],
    [
      "the digests of a row were removed",
      chain().map((row, at) => (at === 2 ? { ...row, ...WITHOUT_CHAIN } : row)),
      2,
      /no digests/,
    ],
    ["a row is of a later release", changed(2, () => ({ format: 99 })), 2, /format 99/],
  ];
  for (const [what, rows, version, problem] of CASES) {
    test(`the first row that does not verify is named where ${what}`, () => {
      const { first } = checked(rows);
      assert.equal(first?.version, version);
      assert.match(first.problem, problem);
    });
  }

  test("rows from before the chain are told apart, and the first one with digests follows nothing", () => {
    const old = [0, 1].map((version) => ({ version, ...WITHOUT_CHAIN }));
    const result = checked([...old, ...chain(2)]);
    assert.deepEqual(result.unchained, [0, 1]);
    assert.equal(result.first, undefined);
    assert.equal(result.checked, 4);
  });

  function rebuilt(change: (content: StepContent) => StepContent): ChainRow[] {
    let previous = "";
    return chain().map((row) => {
      const contentJson = canonicalJson(change(JSON.parse(row.contentJson) as StepContent));
      const digests = digestsOf(contentJson, row.restJson, previous);
      previous = digests.row;
      return { ...row, contentJson, ...digests };
    });
  }
});

describe("digests", () => {
  test("canonical JSON does not depend on the order of keys, also through a database", () => {
    const value = { b: [1e-7, -0, 1e21, 0.1], a: { d: null, c: "ä\n" } };
    const stored = JSON.parse(JSON.stringify({ a: { c: "ä\n", d: null }, b: [0.0000001, 0, 1e21, 0.1] }));
    assert.equal(canonicalJson(value), canonicalJson(stored));
  });

  test("settings do not depend on the name of the run or the place of its tokenizer", () => {
    const run = (name: string, tokenizer: unknown, size = 8) =>
      settingsDigest({ name, seed: 1, model: { init: { hiddenSize: size, tokenizer } } });
    assert.equal(run("a", { files: {} }), run("b", "runs/b-1/tokenizer"));
    assert.notEqual(run("a", ""), run("a", "", 16));
  });

  test("rollouts that differ in a prompt, a sampled token or a log-probability are told apart", () => {
    const sample = (tokenIds: number[], logprobs: number[]) => ({
      tokenIds,
      lossMask: Uint8Array.of(0, 0, 1, 1),
      logprobs,
      versions: [],
    });
    const digests = (tokenIds: number[], logprobs = [-1, -2]) => rolloutDigests([sample(tokenIds, logprobs)]);
    const one = digests([1, 2, 3, 4]);
    assert.deepEqual(digests([1, 2, 3, 4]), one);
    const asked = digests([1, 9, 3, 4]);
    assert.ok(asked.prompt !== one.prompt && asked.tokens !== one.tokens);
    const answered = digests([1, 2, 3, 9]);
    assert.ok(answered.prompt === one.prompt && answered.tokens !== one.tokens);
    const surprised = digests([1, 2, 3, 4], [-1, -2.5]);
    assert.ok(surprised.tokens === one.tokens && surprised.logprobs !== one.logprobs);
    assert.notEqual(
      rolloutDigests([sample([1], []), sample([2], [])]).tokens,
      rolloutDigests([sample([1, 2], [])]).tokens,
    );
  });
});
