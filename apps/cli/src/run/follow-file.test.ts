import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type RunConfig, resolveRunConfig, tokenizerDigest } from "@hone/config";
import { REPOSITORY } from "../project.ts";
import { changesSince } from "./follow-file.ts";
import { loadRunFile } from "./load-run-file.ts";

const { config: lake } = await loadRunFile(
  join(REPOSITORY, "examples", "01-frozen-lake", "run.yaml"),
  REPOSITORY,
);
const TOKENIZER = "runs/lake-1/tokenizer";

/** A run's state as a trainer publishes it: the tokenizer is a folder in the state folder, and is named by its digest. */
function stateOf(config: RunConfig) {
  const { model } = config;
  if ("path" in model) {
    return {
      configJson: JSON.stringify({ ...config, model: { ...model, tokenizer: TOKENIZER } }),
      tokenizerDigest: "",
    };
  }
  const { tokenizer } = model.init;
  assert.ok(typeof tokenizer === "object");
  const shown = { ...config, model: { init: { ...model.init, tokenizer: TOKENIZER } } };
  return { configJson: JSON.stringify(shown), tokenizerDigest: tokenizerDigest(tokenizer.files) };
}

function changed(config: RunConfig, path: readonly string[], value: unknown): RunConfig {
  const copy = structuredClone(config) as unknown as Record<string, unknown>;
  const parent = path.slice(0, -1).reduce((at, key) => at[key] as Record<string, unknown>, copy);
  parent[path.at(-1)!] = value;
  return resolveRunConfig(copy);
}

const adapted = resolveRunConfig({ ...lake, model: { path: "owner/name", lora: { rank: 8 } } });

describe("changesSince()", () => {
  test("finds no change in the file that a run was made from", () => {
    assert.deepEqual(changesSince(stateOf(lake), lake), []);
    assert.deepEqual(changesSince(stateOf(adapted), adapted), []);
  });

  const cases: readonly (readonly [key: string, from: RunConfig, value: unknown, matters: boolean])[] = [
    ["seed", lake, 99, true],
    ["model.init.hiddenSize", lake, 32, true],
    ["trainer.steps", lake, 9_999, true],
    ["trainer.checkpoint.keep", lake, 7, false],
    ["trainer.eval.every", lake, 7, false],
    ["model.lora.rank", adapted, 16, true],
    ["model.lora.alpha", adapted, 32, true],
  ];
  for (const [key, from, value, matters] of cases) {
    test(`reports a changed ${key} with both values`, () => {
      const now = changed(from, key.split("."), value);
      const changes = changesSince(stateOf(from), now);
      assert.deepEqual(
        changes.map((change) => [change.key, change.after, change.matters]),
        [[key, value, matters]],
      );
      assert.notEqual(changes[0]?.before, undefined);
    });
  }

  test("reports that adapters were removed", () => {
    const whole = resolveRunConfig({ ...lake, model: { path: "owner/name" } });
    assert.deepEqual(
      changesSince(stateOf(adapted), whole).map(({ key, matters }) => [key, matters]),
      [["model.lora", true]],
    );
  });

  test("reports a tokenizer with other files", () => {
    const tokenizer = { files: { "tokenizer.json": "{}" } };
    const now = changed(lake, ["model", "init", "tokenizer"], tokenizer);
    assert.deepEqual(
      changesSince(stateOf(lake), now).map(({ key, after }) => [key, after]),
      [["model.init.tokenizer", tokenizerDigest(tokenizer.files)]],
    );
  });

  test("a key that the run's stored file lacks counts as its default", () => {
    const state = stateOf(lake);
    const stored = JSON.parse(state.configJson);
    delete stored.rollout.onUniformFailure;
    assert.deepEqual(changesSince({ ...state, configJson: JSON.stringify(stored) }, lake), []);
  });

  test("a stored file that cannot be read counts as a different file", () => {
    for (const configJson of ["", "{}", "[]", '{"model":{},"tainer":1}']) {
      assert.deepEqual(
        changesSince({ configJson, tokenizerDigest: "" }, lake).map(({ matters }) => matters),
        [true],
        configJson,
      );
    }
  });
});
