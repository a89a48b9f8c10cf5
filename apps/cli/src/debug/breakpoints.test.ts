import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { deadline } from "@hone/core";
import { connectInspector } from "@hone/testing";
import { REPOSITORY } from "../project.ts";
import { AGENT_LINE, JUDGE_LINE, TOOL_LINE, testProject } from "./testing.ts";

/* Attaches a debugger as an editor does: over the inspector protocol, with breakpoints by file and line. */

const MAIN = join(REPOSITORY, "apps", "cli", "src", "main.ts");
const WAIT_MS = 60_000;

test("`hone debug` stops at breakpoints in the agent, the tool and the judge", async () => {
  await using own = await testProject();
  const args = ["debug", own.runFile, "--answers", join(own.project.folder, "answers.yaml")];
  const child = spawn(process.execPath, [MAIN, ...args, "--inspect-wait", "--inspect-port", "0"], {
    env: {
      ...process.env,
      HONE_FILES: own.project.folder,
      HONE_STATE_DIR: own.project.state,
      NO_COLOR: "1",
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  try {
    const address = await deadline("the debugger's address", WAIT_MS, () => {
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      void ended.then((code) => reject(new Error(`ended with ${code}: ${output}`)));
      for (const stream of [child.stdout, child.stderr]) {
        stream.on("data", (data) => {
          output += String(data);
          const found = /ws:\/\/\S+/.exec(output)?.[0];
          if (found !== undefined) resolve(found);
        });
      }
      return promise;
    });
    using inspector = await connectInspector(address);
    const wanted = new Map<string, string>();
    for (const [name, line] of [
      ["agent.ts", AGENT_LINE],
      ["agent.ts", TOOL_LINE],
      ["judge.ts", JUDGE_LINE],
    ] as const) {
      const file = join(own.project.folder, name);
      const lines = (await readFile(file, "utf8")).split("\n");
      const lineNumber = lines.findIndex((text) => text.includes(line));
      const url = pathToFileURL(file).href;
      wanted.set(line, `${url}:${lineNumber}`);
      await inspector.breakAt(url, lineNumber);
    }
    await inspector.begin();
    for (const line of [AGENT_LINE, TOOL_LINE, AGENT_LINE, JUDGE_LINE]) {
      const { url, lineNumber } = await inspector.nextHalt();
      assert.equal(`${url}:${lineNumber}`, wanted.get(line));
      await inspector.resume();
    }
    inspector[Symbol.dispose]();
    assert.equal(await deadline("the command to end", WAIT_MS, () => ended), 0, output);
    assert.match(output, /reward +1\b/);
  } finally {
    child.kill("SIGKILL");
    await ended;
  }
});
