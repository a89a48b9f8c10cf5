/**
 * Compares logits and greedy continuations of a checkpoint with those of transformers, for `npm run parity`:
 *
 *   node services/inference-gateway/bench/parity.ts MODEL REFERENCE
 */
import { open, readFile } from "node:fs/promises";
import path from "node:path";
import { loadModel } from "@hone/checkpoint";
import { contextLayoutFor, PAGE_ROWS } from "@hone/nn";
import { RUN_COST } from "../src/embedded/embedded-engine.ts";
import { EngineCore } from "../src/embedded/engine-core.ts";
import { OnnxRunner } from "../src/embedded/onnx/onnx-runner.ts";

interface Prompt {
  readonly ids: number[];
  readonly positions: number[];
  readonly continuation: number[];
}

const MAX_LOGIT_ERROR = 2e-4;
/** If two tokens are almost equally likely, rounding may choose the other one. */
const LEAST_EQUAL = 19;
const CACHE_BYTES = 2 * 2 ** 30;

const [modelFolder, referenceFolder] = process.argv.slice(2);
if (modelFolder === undefined || referenceFolder === undefined) {
  throw new Error("Give two folders: that of the model and that of the reference");
}
const { prompts } = JSON.parse(await readFile(path.join(referenceFolder, "reference.json"), "utf8")) as {
  prompts: Prompt[];
};
const { spec, weights } = await loadModel(modelFolder);
let isEqual = true;
for (const isWeightLeft of contextLayoutFor(spec) === "slots" ? [true, false] : [false]) {
  const runner = await OnnxRunner.create(spec, weights, {
    maxCacheBytes: CACHE_BYTES,
    maxSequences: prompts.length,
    intraOpThreads: 1,
    isWeightLeft,
  });
  const worst = await largestLogitError(runner);
  console.log(
    `  ${prompts.length} prompts, weights ${isWeightLeft ? "as they lie" : "packed"}: largest difference of a logit ${worst.toExponential(1)} (at most ${MAX_LOGIT_ERROR})`,
  );
  const equal = await equalContinuations(runner);
  console.log(`  greedy continuations: ${equal} of ${prompts.length} equal (at least ${LEAST_EQUAL})`);
  isEqual &&= worst < MAX_LOGIT_ERROR && equal >= LEAST_EQUAL;
}
process.exitCode = isEqual ? 0 : 1;

/** Each prompt in pieces that end at the positions to compare. */
async function largestLogitError(runner: OnnxRunner): Promise<number> {
  await using file = await open(path.join(referenceFolder!, "logits.f32"));
  const wanted = new Float32Array(spec.vocabSize);
  let largest = 0;
  for (const { ids, positions } of prompts) {
    const tokenIds = Int32Array.from(ids);
    const pages = Int32Array.from({ length: Math.ceil(ids.length / PAGE_ROWS) }, (_, i) => i + 1);
    let start = 0;
    for (const position of positions) {
      const item = { tokenIds, pages, start, count: position + 1 - start, wantsLogits: true };
      const { logits } = await runner.run([item]);
      await file.read(new Uint8Array(wanted.buffer));
      for (let i = 0; i < wanted.length; i++) {
        const error = Math.abs(logits![i]! - wanted[i]!);
        if (!(error <= largest)) largest = error;
      }
      start = position + 1;
    }
  }
  return largest;
}

/** Disposes of the runner. */
async function equalContinuations(runner: OnnxRunner): Promise<number> {
  const core = new EngineCore({
    maxSequences: prompts.length,
    maxWaiting: prompts.length,
    maxStepTokens: 512,
    runCost: RUN_COST,
    now: () => performance.now(),
  });
  const installed = core.install("model", 0, runner);
  await core.step();
  await installed;
  for (const [i, { ids, continuation }] of prompts.entries()) {
    const request = {
      id: String(i),
      model: "model",
      promptIds: ids,
      sampling: {
        temperature: 0,
        topP: 1,
        topK: 0,
        maxNewTokens: continuation.length,
        stopTokenIds: [],
      },
      seed: 0,
      sessionId: "",
      groupId: "",
      versionRange: { lowest: 0, highest: 0 },
      deadlineMs: 3_600_000,
    };
    core.submit(request, false);
  }
  let numEqual = 0;
  while (core.hasWork) {
    await core.step();
    for (const event of core.takeEvents()) {
      if (event.kind !== "done") throw new Error(`A generation failed: ${JSON.stringify(event)}`);
      if (event.result.tokenIds.join() === prompts[Number(event.id)]!.continuation.join()) numEqual++;
    }
  }
  const unloaded = core.unload("model");
  await core.step();
  await unloaded;
  return numEqual;
}
