import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { saveCheckpoint } from "@hone/checkpoint";
import { initialiseWeights, resolveModelSpec } from "@hone/nn";
import { eventually, type TemporaryFolder, temporaryFolder } from "@hone/testing";
import { makeTokenizer, wordTokenizerFiles } from "@hone/tokenizer";
import { runToEnd } from "../support/follow.ts";
import { serviceUrl } from "../support/inspect/scrape.ts";
import { findPython } from "../support/processes/find-python.ts";
import { runPython } from "../support/processes/run-python.ts";
import { startStack, type TestStack } from "../support/stack.ts";
import { saveTinyModel } from "../support/tiny-model.ts";

/* The gateway of a stack serves checkpoints to an external program and to a judge of the same stack. */

const KEY = "of-the-test";
const RUN_DEADLINE_MS = 120_000;
const TASKS = 2;
const GROUP_SIZE = 2;

const python = findPython("openai", "OpenAI");
const skipPython =
  python === undefined ? "no Python with openai: `pip install openai`, or name one by HONE_PYTHON" : false;
if (skipPython !== false) console.warn(`SKIPPED: the Python client is not tested, as there is ${skipPython}`);

/** A model that generates only `word`: one value of each hidden state is large, and the head depends on that value alone. */
async function saveParrot(folder: string, word: string): Promise<void> {
  const characters = Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index));
  const files = wordTokenizerFiles({
    roles: ["system", "user", "assistant"],
    words: [word],
    characters: [...characters, "\n"],
  });
  const tokenizer = makeTokenizer(files, "a parrot");
  const { vocabSize, stopTokenIds } = tokenizer;
  const hiddenSize = 16;
  const spec = resolveModelSpec({
    vocabSize,
    hiddenSize,
    numLayers: 1,
    numHeads: 2,
    isTied: false,
    maxPositions: 4_096,
    eosTokenIds: stopTokenIds,
  });
  const weights = initialiseWeights(spec, 1);
  for (let id = 0; id < vocabSize; id++) weights["model.embed_tokens.weight"]![id * hiddenSize] = 1;
  weights["lm_head.weight"]!.fill(0)[tokenizer.tokenId(word)! * hiddenSize] = 10;
  await mkdir(folder);
  await saveCheckpoint(folder, { spec, weights, companions: files });
}

describe("checkpoints that a gateway serves", { timeout: 240_000 }, () => {
  let folder: TemporaryFolder;
  let stack: TestStack;
  let gateway: string;

  before(async () => {
    folder = await temporaryFolder("gateway");
    const place = (name: string) => path.join(folder.path, name);
    await saveTinyModel(place("tiny"));
    await saveParrot(place("grader"), "Score: 7");
    await mkdir(place("files"));
    const rows = Array.from({ length: TASKS }, (_, index) => ({ prompt: `What is ${index} and ${index}?` }));
    await writeFile(place("files/rows.jsonl"), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
    stack = await startStack({
      env: {
        HONE_FILES: place("files"),
        HONE_MODEL_FOLDERS: folder.path,
        HONE_INFERENCE_SERVE: `tiny=${place("tiny")},grader=${place("grader")}`,
        HONE_INFERENCE_API_KEY: KEY,
        HONE_JUDGE_KEY_GATEWAY: KEY,
        HONE_JUDGE_KEY_GATEWAY_HOSTS: "127.0.0.1",
      },
    });
    gateway = serviceUrl(stack, "inference-gateway");
    await eventually("the checkpoints to be served", async () => {
      const answer = await fetch(`${gateway}/v1/models`, { headers: { authorization: `Bearer ${KEY}` } });
      return ((await answer.json()) as { data: unknown[] }).data.length === 2;
    });
  });
  after(async () => {
    await stack?.[Symbol.asyncDispose]();
    await folder?.[Symbol.asyncDispose]();
  });

  test("answer the official OpenAI client for Python", { skip: skipPython }, async () => {
    const { code, output } = await runPython(
      python ?? "",
      path.join(import.meta.dirname, "openai_gateway.py"),
      { OPENAI_BASE_URL: `${gateway}/v1`, OPENAI_API_KEY: KEY, MODEL: "tiny" },
    );
    assert.equal(code, 0, output);
    assert.equal(output.match(/^ok /gm)?.length, 7, output);
  });

  test("are observable: /health needs no key, and /metrics counts the tokens that they sampled", async () => {
    const health = await fetch(`${gateway}/health`);
    assert.deepEqual([health.status, await health.json()], [200, { status: "ok" }]);
    const ask = await fetch(`${gateway}/v1/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "grader", prompt: "the lake", max_tokens: 3, temperature: 0 }),
    });
    const { choices } = (await ask.json()) as { choices: { text: string }[] };
    assert.equal(choices[0]?.text, "Score: 7".repeat(3));
    const metrics = await (await fetch(`${gateway}/metrics`)).text();
    const sampled = /^hone_engine_sampled_tokens_total(?:\{[^}]*\})? (\d+)$/m.exec(metrics)?.[1];
    assert.ok(Number(sampled) >= 3, sampled);
  });

  test("grade the answers of a run for the judge `llm`", async () => {
    const { steps } = await runToEnd(
      stack,
      {
        name: "graded",
        seed: 3,
        model: { path: path.join(folder.path, "tiny") },
        dataset: { train: { source: "jsonl", path: "rows.jsonl" } },
        agent: { name: "single_turn" },
        rollout: {
          tasksPerStep: TASKS,
          groupSize: GROUP_SIZE,
          maxTurns: 1,
          maxContextTokens: 256,
          sampling: { maxNewTokens: 8 },
        },
        judge: [
          {
            kind: "llm",
            baseUrl: `${gateway}/v1`,
            model: "grader",
            rubric: "Any answer will do.",
            keyVariable: "HONE_JUDGE_KEY_GATEWAY",
            maxTokens: 2,
            price: { input: 1, output: 1_000_000 },
          },
        ],
        trainer: { steps: 1, optimizer: { kind: "adamw", learningRate: 0.001 } },
      },
      { deadlineMs: RUN_DEADLINE_MS },
    );
    const { metrics = {} } = steps[0] ?? {};
    assert.ok(Math.abs(Number(metrics["judge/llm"]) - 0.7) < 1e-9, JSON.stringify(metrics));
    assert.equal(metrics["outcome/infra_failed"], 0);
    const [cached, cost] = [Number(metrics["judge/llm/cached"]), Number(metrics["judge/llm/cost"])];
    // Each grade took two tokens.
    assert.ok(Math.abs(cost - 2 * (1 - cached)) < 0.01, `${cost} with ${cached} kept`);
  });
});
