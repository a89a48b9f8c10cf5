import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { ConfigError } from "@hone/config";
import { UsageError } from "../errors.ts";
import { REPOSITORY } from "../project.ts";
import { isSameRun, loadRunFile, problemLines } from "./load-run-file.ts";

const EXAMPLE = join(REPOSITORY, "examples", "01-frozen-lake");
const root = mkdtempSync(join(tmpdir(), "hone run file "));
after(() => rmSync(root, { recursive: true, force: true }));

describe("loadRunFile()", () => {
  test("inlines what the first example names", async () => {
    const loaded = await loadRunFile(join(EXAMPLE, "run.yaml"), REPOSITORY);
    const parsed = JSON.parse(loaded.text) as {
      agent: object;
      model: { init: { tokenizer: { files: object } } };
    };
    assert.equal(loaded.name, "frozen-lake");
    assert.ok("config" in parsed.agent && !("configPath" in parsed.agent));
    assert.ok("tokenizer.json" in parsed.model.init.tokenizer.files);
  });

  test("finds files beside the run file, in any folder", async () => {
    const folder = join(root, "copy");
    cpSync(EXAMPLE, folder, { recursive: true });
    const loaded = await loadRunFile(join(folder, "run.yaml"), root);
    assert.ok(loaded.text.includes('"config"'));
  });

  test("says which key names a file that is not there", async () => {
    const folder = join(root, "broken");
    cpSync(EXAMPLE, folder, { recursive: true });
    const text = readFileSync(join(folder, "run.yaml"), "utf8").replace("agent.yaml", "missing.yaml");
    writeFileSync(join(folder, "run.yaml"), text);
    await assert.rejects(
      loadRunFile(join(folder, "run.yaml"), folder),
      (error) => error instanceof ConfigError && error.problems.some(({ key }) => key === "agent.configPath"),
    );
  });

  test("says which run file is not there", async () => {
    await assert.rejects(
      loadRunFile("/nowhere/run.yaml", root),
      (error) => error instanceof UsageError && /nowhere/.test(error.message),
    );
  });
});

describe("isSameRun()", () => {
  const file = join(EXAMPLE, "run.yaml");
  /** As the trainer stores a run: its tokenizer as a folder of the state folder. */
  async function stored(change: (config: { seed: number }) => void = () => undefined) {
    const loaded = await loadRunFile(file, REPOSITORY);
    const config = JSON.parse(loaded.text);
    const state = mkdtempSync(join(root, "state-"));
    cpSync(EXAMPLE, join(state, "runs", "lake-1", "tokenizer"), {
      recursive: true,
      filter: (path) => !/\.(yaml|ts|md)$/.test(path),
    });
    config.model.init.tokenizer = "runs/lake-1/tokenizer";
    change(config);
    return { loaded, state, configJson: JSON.stringify(config) };
  }

  test("knows its file again in what the trainer stored", async () => {
    const { loaded, state, configJson } = await stored();
    assert.equal(await isSameRun(loaded, configJson, state), true);
  });

  test("tells another seed, another tokenizer and a run without a stored file apart", async () => {
    const other = await stored((config) => {
      config.seed++;
    });
    assert.equal(await isSameRun(other.loaded, other.configJson, other.state), false);
    const { loaded, state, configJson } = await stored();
    writeFileSync(join(state, "runs", "lake-1", "tokenizer", "chat_template.jinja"), "another");
    assert.equal(await isSameRun(loaded, configJson, state), false);
    assert.equal(await isSameRun(loaded, "", state), false);
  });
});

test("problemLines() names the key once", () => {
  const lines = problemLines([
    { key: "agent.name", message: "Cannot accept `agent.name` …" },
    { key: "seed", message: "Cannot accept it" },
  ]);
  assert.deepEqual(lines, ["Cannot accept `agent.name` …", "seed: Cannot accept it"]);
});
