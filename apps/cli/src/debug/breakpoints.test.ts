import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { deadline } from "@hone/core";
import { REPOSITORY } from "../project.ts";
import { AGENT_LINE, JUDGE_LINE, TOOL_LINE, testProject } from "./testing-project.ts";

/* A debugger, as an editor attaches one: over the inspector protocol, with breakpoints by file and line. */

const MAIN = join(REPOSITORY, "apps", "cli", "src", "main.ts");
const WAIT_MS = 60_000;

interface Paused {
  readonly callFrames: readonly {
    readonly location: { readonly scriptId: string; readonly lineNumber: number };
  }[];
}

test("breakpoints in the agent, the tool and the judge halt `hone debug`", async () => {
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
    const inspector = await connect(address);
    await inspector.send("Debugger.enable");
    const wanted = new Map<string, number>();
    for (const [name, line] of [
      ["agent.ts", AGENT_LINE],
      ["agent.ts", TOOL_LINE],
      ["judge.ts", JUDGE_LINE],
    ] as const) {
      const file = join(own.project.folder, name);
      const lines = (await readFile(file, "utf8")).split("\n");
      const lineNumber = lines.findIndex((text) => text.includes(line));
      assert.ok(lineNumber > 0);
      wanted.set(line, lineNumber);
      await inspector.send("Debugger.setBreakpointByUrl", { url: pathToFileURL(file).href, lineNumber });
    }
    await inspector.send("Runtime.runIfWaitingForDebugger");
    const halts: string[] = [];
    for (const line of [AGENT_LINE, TOOL_LINE, AGENT_LINE, JUDGE_LINE]) {
      const { callFrames } = await inspector.nextPause();
      const { location } = callFrames[0] ?? assert.fail("no frame");
      assert.equal(location.lineNumber, wanted.get(line));
      halts.push(inspector.urlOf(location.scriptId)?.split("/").at(-1) ?? "");
      await inspector.send("Debugger.resume");
    }
    assert.deepEqual(halts, ["agent.ts", "agent.ts", "agent.ts", "judge.ts"]);
    inspector.close();
    assert.equal(await deadline("the command to end", WAIT_MS, () => ended), 0, output);
    assert.match(output, /reward +1\b/);
  } finally {
    child.kill("SIGKILL");
    await ended;
  }
});

/** The part of an inspector's client that the test needs. */
async function connect(address: string) {
  const socket = new WebSocket(address);
  const calls = new Map<number, (answer: { error?: { message: string } }) => void>();
  const pauses: Paused[] = [];
  const scripts = new Map<string, string>();
  let waiting: ((paused: Paused) => void) | undefined;
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve, { once: true });
    socket.addEventListener("error", reject, { once: true });
  });
  socket.addEventListener("message", ({ data }) => {
    const message = JSON.parse(String(data));
    if (message.id !== undefined) calls.get(message.id)?.(message);
    if (message.method === "Debugger.scriptParsed") scripts.set(message.params.scriptId, message.params.url);
    if (message.method !== "Debugger.paused") return;
    if (waiting === undefined) pauses.push(message.params);
    else waiting(message.params);
    waiting = undefined;
  });
  let count = 0;
  return {
    send: (method: string, params: object = {}) =>
      deadline(method, WAIT_MS, async () => {
        const id = ++count;
        const answered = new Promise<{ error?: { message: string } }>((resolve) => calls.set(id, resolve));
        socket.send(JSON.stringify({ id, method, params }));
        const { error } = await answered;
        assert.equal(error, undefined);
      }),
    nextPause: (): Promise<Paused> =>
      deadline("a breakpoint", WAIT_MS, async () => {
        const known = pauses.shift();
        if (known !== undefined) return known;
        return new Promise<Paused>((resolve) => {
          waiting = resolve;
        });
      }),
    urlOf: (scriptId: string) => scripts.get(scriptId),
    close: () => socket.close(),
  };
}
