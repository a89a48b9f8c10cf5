import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { REPOSITORY } from "../project.ts";
import { loadRunFile } from "../run/load-run-file.ts";

const run = promisify(execFile);
const MAIN = path.join(REPOSITORY, "apps", "cli", "src", "main.ts");

describe("hone new agent", () => {
  let folder: string;
  const hone = (...args: string[]) =>
    run(process.execPath, [MAIN, "new", ...args], {
      env: { ...process.env, INIT_CWD: folder, NO_COLOR: "1" },
    });
  before(async () => {
    // Below the clone, as a user's folder is, and in a place that git ignores.
    await mkdir(path.join(REPOSITORY, ".hone"), { recursive: true });
    folder = await mkdtemp(path.join(REPOSITORY, ".hone", "new-agent-"));
  });
  after(() => rm(folder, { recursive: true }));

  test("writes an agent whose test passes and whose run file is valid", async () => {
    const { stdout } = await hone("agent", "word_smith");
    assert.match(stdout, /agent\.test\.ts/);
    const own = path.join(folder, "word_smith");
    assert.deepEqual(await readdir(own), [
      "agent.test.ts",
      "agent.ts",
      "agent.yaml",
      "rows.jsonl",
      "run.yaml",
    ]);
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const tested = await run(process.execPath, ["--test", path.join(own, "agent.test.ts")], { env });
    assert.match(tested.stdout, /pass 2\b/);
    const loaded = await loadRunFile(path.join(own, "run.yaml"), REPOSITORY);
    assert.deepEqual(loaded.config.agent.config, { maxToolAnswerTokens: 64 });
    const [row] = (await readFile(path.join(own, "rows.jsonl"), "utf8")).split("\n");
    assert.deepEqual(JSON.parse(row ?? "").reward_model, { style: "rule", ground_truth: "ekal" });
  });

  for (const [args, rule] of [
    [["agent", "word_smith"], /word_smith exists already/],
    [["agent", "Word Smith"], /words of a-z/],
    [["tool", "word"], /cannot make a tool; it can make an agent/],
  ] as const) {
    test(`refuses ${args.join(" ")}`, async () => {
      await assert.rejects(hone(...args), (error) => {
        assert.match(String((error as { stderr?: string }).stderr), rule);
        return true;
      });
    });
  }
});
