import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { ConfigError } from "@hone/config";
import { UsageError } from "../errors.ts";
import { REPOSITORY } from "../project.ts";
import { loadRunFile, problemLines } from "./load-run-file.ts";

const EXAMPLE = join(REPOSITORY, "examples", "01-frozen-lake");
const root = mkdtempSync(join(tmpdir(), "hone run file "));
after(() => rmSync(root, { recursive: true, force: true }));

describe("loadRunFile()", () => {
  test("inlines the files that the first example names", async () => {
    const loaded = await loadRunFile(join(EXAMPLE, "run.yaml"), REPOSITORY);
    const parsed = JSON.parse(loaded.configJson) as {
      agent: object;
      model: { init: { tokenizer: { files: object } } };
    };
    assert.equal(loaded.name, "frozen-lake");
    assert.ok("config" in parsed.agent && !("configPath" in parsed.agent));
    assert.ok("tokenizer.json" in parsed.model.init.tokenizer.files);
  });

  test("finds files beside the run file in any folder", async () => {
    const folder = join(root, "copy");
    cpSync(EXAMPLE, folder, { recursive: true });
    const loaded = await loadRunFile(join(folder, "run.yaml"), root);
    assert.ok(loaded.configJson.includes('"config"'));
  });

  test("reports the key that names a missing file", async () => {
    const folder = join(root, "broken");
    cpSync(EXAMPLE, folder, { recursive: true });
    const text = readFileSync(join(folder, "run.yaml"), "utf8").replace("agent.yaml", "missing.yaml");
    writeFileSync(join(folder, "run.yaml"), text);
    await assert.rejects(
      loadRunFile(join(folder, "run.yaml"), folder),
      (error) => error instanceof ConfigError && error.problems.some(({ key }) => key === "agent.configPath"),
    );
  });

  test("reports a missing run file by its path", async () => {
    await assert.rejects(
      loadRunFile("/nowhere/run.yaml", root),
      (error) => error instanceof UsageError && /nowhere/.test(error.message),
    );
  });
});

test("problemLines() names the key once", () => {
  const lines = problemLines([
    { key: "agent.name", message: "Cannot accept `agent.name` …" },
    { key: "seed", message: "Cannot accept it" },
  ]);
  assert.deepEqual(lines, ["Cannot accept `agent.name` …", "seed: Cannot accept it"]);
});
