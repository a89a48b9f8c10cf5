import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { agentOf } from "@hone/agents";
import { playAgent } from "@hone/agents/testing";
import "./built-ins.ts";

/* Runs the examples of docs/agents.md, docs/tools.md and docs/environments.md as they stand there. */

const run = promisify(execFile);
const REPOSITORY = path.join(import.meta.dirname, "../../../..");
const BUILT_INS = path.join(import.meta.dirname, "built-ins.ts");

describe("the examples of the documentation", () => {
  let folder: string;
  before(async () => {
    await mkdir(path.join(REPOSITORY, ".hone"), { recursive: true });
    folder = await mkdtemp(path.join(REPOSITORY, ".hone", "docs-"));
    for (const page of ["agents.md", "tools.md", "environments.md"]) {
      const text = await readFile(path.join(REPOSITORY, "docs", page), "utf8");
      for (const [, name = "", code = ""] of text.matchAll(/```\w+\n(?:\/\/|#) file: (\S+)\n(.*?)```/gs)) {
        await writeFile(path.join(folder, name), code);
      }
    }
  });
  after(() => rm(folder, { recursive: true }));

  for (const name of ["guesser.test.ts", "dice.test.ts", "numbers.test.ts"]) {
    test(`${name} passes`, async () => {
      const { NODE_TEST_CONTEXT: _, ...env } = process.env;
      const { stdout } = await run(
        process.execPath,
        ["--import", BUILT_INS, "--test", path.join(folder, name)],
        { env },
      );
      assert.match(stdout, /pass 1\b/);
    });
  }

  test("tools.yaml is a file of tools", async () => {
    const agent = agentOf("tool_agent") ?? assert.fail("no agent");
    const played = await playAgent(agent, {
      row: { prompt: "6 * 7?" },
      config: { toolFile: "tools.yaml" },
      answers: ['<tool_call>{"name": "calc", "arguments": {"expression": "6 * 7"}}</tool_call>', "42"],
      filesFolder: folder,
    });
    assert.match(played.prompts[0] ?? "", /"calc"/);
    assert.match(played.prompts[1] ?? "", /<tool_response>\n42\n/);
  });
});
