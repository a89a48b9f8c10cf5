import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { saveCheckpoint } from "@hone/checkpoint";
import { initialiseWeights, resolveModelSpec } from "@hone/nn";
import { type RealVllm, startRealVllm, temporaryFolder, VLLM_VARIABLE } from "@hone/testing";
import { runToEnd } from "../support/follow.ts";
import { lakeRun } from "../support/lake-run.ts";
import { REPOSITORY, startStack, type TestStack } from "../support/stack.ts";

/*
 * Runs on a stack as a user starts it, whose engine is a real vLLM server. Each step's weights must reach the server, and its
 * logprobs must be those that the trainer computes with the same weights.
 */

const environment = process.env[VLLM_VARIABLE];
const NOT_TESTED = `not tested: ${VLLM_VARIABLE} must name a Python environment with vLLM (libs/testing/src/real-vllm.ts)`;
const TOKENIZER_FILES = ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"];
const CONTEXT_TOKENS = 128;
/** Both engines compute in float32, but sum in different orders. */
const MAX_MISMATCH = 1e-3;
const RUN = { steps: 2, tasksPerStep: 2, minibatches: 1, warmStartTasks: 10, evalTasks: 2 };
const RUN_DEADLINE_MS = 900_000;

describe("a run on a real vLLM server", {
  skip: environment === undefined && NOT_TESTED,
}, () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let server: RealVllm;
  let stack: TestStack;
  let start: string;

  before(async () => {
    folder = await temporaryFolder("real-vllm-run");
    start = path.join(folder.path, "start");
    await saveCheckpoint(start, await madeModel());
    server = await startRealVllm(environment!, start, folder.path, CONTEXT_TOKENS);
    stack = await startStack({
      env: {
        HONE_INFERENCE_ENGINE: "vllm",
        HONE_INFERENCE_ENGINE_URL: server.url,
        HONE_MODEL_FOLDERS: folder.path,
      },
    });
  });
  after(async () => {
    await stack?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
    await folder?.[Symbol.asyncDispose]();
  });

  async function play(name: string, model: object) {
    const { steps, evaluations } = await runToEnd(
      stack,
      { ...(await lakeRun({ ...RUN, name })), model },
      { deadlineMs: RUN_DEADLINE_MS },
    );
    assert.equal(steps.length, RUN.steps);
    for (const { metrics } of steps) {
      const { tokens } = metrics;
      assert.ok(
        Number(tokens) > 0 && Number(metrics["mismatch/max"]) < MAX_MISMATCH,
        JSON.stringify(metrics),
      );
    }
    assert.ok(evaluations.length > 0);
  }

  // It needs the weights that the server was started with.
  test("trains adapters", () => play("vllm-lora", { path: start, lora: { rank: 4, alpha: 8 } }));

  test("trains all weights", () => play("vllm-whole", { path: start }));
});

test("a real vLLM server scores rollouts as a teacher as the embedded engine does with the same model", {
  skip: environment === undefined && NOT_TESTED,
}, async () => {
  await using folder = await temporaryFolder("vllm-teacher");
  const start = path.join(folder.path, "start");
  await saveCheckpoint(start, await madeModel());
  const log = folder.path;
  await using server = await startRealVllm(environment!, start, log, CONTEXT_TOKENS, { hasAdapters: false });
  await using embedded = await startStack({ env: { HONE_MODEL_FOLDERS: folder.path } });
  const distances = async (name: string, teacher: object) => {
    const run = { ...(await lakeRun({ ...RUN, steps: 3, name })), model: { path: start } };
    const algorithm = { ...run.algorithm, distillation: { teachers: [teacher] } };
    const { steps } = await runToEnd(embedded, { ...run, algorithm }, { deadlineMs: RUN_DEADLINE_MS });
    return steps.map(({ metrics }) => Number(metrics["distillation/kl/mean"]));
  };
  const onServer = await distances("teacher-on-vllm", {
    endpoint: { baseUrl: `${server.url}/v1`, model: start },
  });
  const own = await distances("teacher-embedded", { model: { path: start } });
  assert.equal(onServer.length, 3);
  assert.ok(Math.abs(own.at(-1)!) > 10 * MAX_MISMATCH, `the policy did not move: ${own.join(", ")}`);
  for (const [index, distance] of onServer.entries()) {
    assert.ok(
      Math.abs(distance - own[index]!) < MAX_MISMATCH,
      `${onServer.join(", ")} and ${own.join(", ")}`,
    );
  }
});

/** A model with a shape that vLLM's attention supports on the CPU. */
async function madeModel() {
  const example = path.join(REPOSITORY, "examples", "01-frozen-lake");
  const texts = TOKENIZER_FILES.map(
    async (name) => [name, await readFile(path.join(example, name), "utf8")] as const,
  );
  const spec = resolveModelSpec({
    vocabSize: 32,
    hiddenSize: 64,
    numLayers: 2,
    numHeads: 4,
    numKeyValueHeads: 2,
    headDim: 32,
    // Untied, because the CPU build does not update a tied head (docs/engines.md).
    isTied: false,
    ropeTheta: 100,
    maxPositions: CONTEXT_TOKENS,
  });
  return {
    spec,
    weights: initialiseWeights(spec, 3),
    companions: Object.fromEntries(await Promise.all(texts)),
  };
}
