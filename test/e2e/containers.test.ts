import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { FakeEngine } from "@hone/sandbox/testing";
import { eventually, temporaryFolder } from "@hone/testing";
import { TOOL_TEMPLATE } from "@hone/tokenizer/testing";
import { startStack, type TestStack } from "../support/stack.ts";
import { saveTinyModel } from "../support/tiny-model.ts";

/*
 * Rollouts that work in containers, and the death of the service that made them. The model is behind a URL, and the container
 * runtime is a fake that speaks Docker's API; libs/sandbox/src/containers/containers.int.test.ts tries a real one.
 */

const MAX_CONTEXT_TOKENS = 8_192;
const IMAGE = "test/image:1";
const WAITS_MS = 60_000;
/** The second command waits until the test has killed the service. */
const COMMANDS = ["echo repaired > file.txt", "until [ -e go ]; do sleep 0.1; done", "cat file.txt"];

describe("rollouts in containers", { timeout: 240_000 }, () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let engine: FakeEngine;
  let stack: TestStack;
  let server: Server;
  let runFile: string;

  before(async () => {
    engine = await FakeEngine.start();
    server = createServer(async (request, response) => {
      request.setEncoding("utf8");
      let text = "";
      for await (const chunk of request) text += String(chunk);
      const { messages } = JSON.parse(text) as { messages: { role: string; content: string | null }[] };
      const told = messages.filter(({ role }) => role === "tool").map(({ content }) => content ?? "");
      const command = COMMANDS[told.length];
      const message =
        command === undefined
          ? { role: "assistant", content: `It says ${told.at(-1)}.` }
          : {
              role: "assistant",
              content: "",
              tool_calls: [
                {
                  id: "a",
                  type: "function",
                  function: { name: "shell", arguments: JSON.stringify({ command }) },
                },
              ],
            };
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ choices: [{ message, finish_reason: "stop" }] }));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    folder = await temporaryFolder("containers");
    const files = path.join(folder.path, "files");
    await mkdir(files);
    const row = { prompt: "Repair it.", reward_model: { style: "rule", ground_truth: "repaired" } };
    await writeFile(path.join(files, "rows.jsonl"), `${JSON.stringify(row)}\n`);
    const model = path.join(folder.path, "model");
    await saveTinyModel(model, { maxPositions: MAX_CONTEXT_TOKENS, chatTemplate: TOOL_TEMPLATE });
    const source = { source: "jsonl", path: "rows.jsonl" };
    runFile = path.join(folder.path, "run.json");
    await writeFile(
      runFile,
      JSON.stringify({
        name: "repair",
        seed: 1,
        model: { path: model },
        dataset: { train: source, eval: source },
        agent: {
          name: "tool_agent",
          config: { tools: [{ name: "container", config: { image: IMAGE, timeMs: 120_000 } }] },
        },
        rollout: {
          tasksPerStep: 1,
          groupSize: 2,
          maxTurns: 6,
          maxContextTokens: MAX_CONTEXT_TOKENS,
          sampling: { temperature: 1, maxNewTokens: 512 },
        },
        judge: [{ kind: "exact", pattern: "repaired" }],
        trainer: { steps: 1, optimizer: { kind: "adamw", learningRate: 0.001 } },
      }),
    );
    stack = await startStack({
      env: {
        HONE_FILES: files,
        HONE_MODEL_FOLDERS: folder.path,
        HONE_CONTAINER_SOCKET: engine.socketPath,
        HONE_CONTAINER_IMAGES: "test/*",
      },
    });
  });
  after(async () => {
    server?.closeAllConnections();
    server?.close();
    await stack?.[Symbol.asyncDispose]();
    await engine?.[Symbol.asyncDispose]();
    await folder?.[Symbol.asyncDispose]();
  });

  const asked = (file: string) => {
    const { port } = server.address() as AddressInfo;
    return ["eval", file, "--endpoint", `http://127.0.0.1:${port}/v1`, "--model", "repairer", "--json"];
  };

  test("a killed agent-rollout leaves no container: the next one removes it, and plays the rollout again", async () => {
    const evaluating = stack.hone(...asked(runFile));
    const isAt = (index: number) => engine.started.some(({ command }) => command.at(-1) === COMMANDS[index]);
    const waits = { deadlineMs: WAITS_MS };
    await eventually("a command that waits", () => isAt(1), waits);
    const [left = ""] = engine.containers.keys();
    assert.equal(engine.containers.size, 1);
    await stack.kill("agent-rollout");
    await eventually("its container to be removed", () => !engine.containers.has(left), waits);
    const numWaiting = () => engine.started.filter(({ command }) => command.at(-1) === COMMANDS[1]).length;
    await eventually("the same command of another attempt", () => numWaiting() === 2, waits);
    const [fresh, more] = engine.containers.values();
    assert.equal(more, undefined);
    await writeFile(path.join(fresh?.folder ?? assert.fail(), "go"), "");
    const { code, output } = await evaluating;
    assert.equal(code, 0, `${output}\n${await stack.describe()}`);
    const { evaluations } = JSON.parse(
      output.slice(output.indexOf("\n{\n"), output.lastIndexOf("\n}") + 2),
    ) as {
      evaluations: { rollouts: number; metrics: Record<string, number> }[];
    };
    assert.equal(evaluations[0]?.metrics["reward/mean"], 1, JSON.stringify(evaluations));
    assert.equal(evaluations[0]?.metrics["outcome/infra_failed"], 0);
    await eventually("the last container to be removed", () => engine.containers.size === 0, waits);
  });

  test("an image that the operator does not allow is refused before anything starts", async () => {
    const numStarted = engine.started.length;
    const text = JSON.stringify({
      ...(JSON.parse(await readFile(runFile, "utf8")) as object),
      agent: {
        name: "tool_agent",
        config: { tools: [{ name: "container", config: { image: "evil/image" } }] },
      },
    });
    const file = path.join(folder.path, "evil.json");
    await writeFile(file, text);
    const { code, output } = await stack.hone(...asked(file));
    assert.equal(code, 1, output);
    assert.match(output, /tools\.0\.config\.image.*must be one that the operator allows: test\/\*/s);
    assert.equal(engine.started.length, numStarted);
  });
});
