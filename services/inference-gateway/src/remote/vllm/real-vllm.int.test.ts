/**
 * A real vLLM server: the suite of all engines, and what it makes of a model compared with the embedded engine, both in
 * float32. Skipped where none is installed: see libs/testing/src/real-vllm.ts.
 */

import assert from "node:assert/strict";
import { copyFile, readdir } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { digestOfMerged, loadModel, saveAdapter, saveCheckpoint } from "@hone/checkpoint";
import { Random } from "@hone/core";
import { initialiseWeights, listAdapterParameters, resolveLora } from "@hone/nn";
import { MODEL_VARIABLE, type RealVllm, startRealVllm, temporaryFolder, VLLM_VARIABLE } from "@hone/testing";
import { loadTokenizer } from "@hone/tokenizer";
import { testInferenceEngine } from "../../domain/inference-engine.suite.ts";
import type {
  GenerateRequest,
  InferenceEngine,
  PolicySource,
  TokenLogprob,
} from "../../domain/inference-engine.ts";
import { EmbeddedEngine } from "../../embedded/embedded-engine.ts";
import { ServerEngine } from "../server-engine.ts";
import { VllmServer } from "./vllm-server.ts";

const environment = process.env[VLLM_VARIABLE];
const model = process.env[MODEL_VARIABLE];
const CONTEXT_TOKENS = 512;
const NEW_TOKENS = 24;
const MAX_LOGPROB_ERROR = 1e-3;
/** Where two tokens are nearly alike, float32 in another order of sums may choose the other one. */
const MAX_OTHER_CONTINUATIONS = 1;
/** The results of different weights differ by more than this; those of equal weights differ by less than the error above. */
const MIN_UPDATE_DIFFERENCE = 0.05;
/** Size of the adapters' values, large enough that their products change the weights they are added to. */
const ADAPTER_SIZE = 0.3;
const PATIENCE_MS = 1_800_000;

const PROMPTS = [
  "The capital of France is",
  "Water boils at",
  "Once upon a time, there was a",
  "The sum of two and three is",
  "To be, or not to be, that is",
  "The largest planet of the solar system is",
  "def fibonacci(n):",
  "In 1969, humans first",
  "The opposite of hot is",
  "My favourite colour is",
  "A triangle has three",
  "The quick brown fox jumps over the lazy",
  "Photosynthesis is the process by which",
  "Dear Sir or Madam,",
  "The stock market fell today because",
  "List of fruits: apples, bananas,",
  "She opened the door and saw",
  "The mitochondria is the",
  "Roses are red, violets are",
  "1, 2, 3, 4, 5,",
];

if (environment === undefined || model === undefined) {
  test("a real vLLM server", {
    skip: `not tested: ${VLLM_VARIABLE} must name a Python environment with vLLM, ${MODEL_VARIABLE} a folder with a small model`,
  });
} else {
  const folder = await temporaryFolder("real-vllm");
  const shared: PolicySource[] = [];
  let server: RealVllm;
  before(
    async () => {
      for (const version of [0, 1, 2]) shared.push(await variantOf(model, folder.path, version));
      server = await startRealVllm(environment, shared[0]!.folder, folder.path, CONTEXT_TOKENS);
    },
    { timeout: PATIENCE_MS },
  );
  after(async () => {
    await server?.[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });
  const engineOver = () =>
    new ServerEngine({ server: new VllmServer({ url: server.url }), maxSequences: 64 });

  describe("a real vLLM server and the embedded engine", { timeout: PATIENCE_MS }, () => {
    let embedded: EmbeddedEngine;
    let prompts: number[][];
    before(async () => {
      embedded = new EmbeddedEngine({ intraOpThreads: 2, maxCacheBytes: 512 * 2 ** 20 });
      const tokenizer = await loadTokenizer(model);
      prompts = PROMPTS.map((text) => [...tokenizer.encode(text)]);
    });
    after(() => embedded.close());

    // The first one: whole weights take the place of those that adapters need, until the server restarts.
    test("an adapter gives the logprobs of weights that it is merged into", async () => {
      const [base, adapter] = [shared[0]!, await adapterOf(shared[0]!, folder.path)];
      await using vllm = disposable(engineOver());
      const sampling = {
        temperature: 1,
        topP: 1,
        topK: 0,
        maxNewTokens: 1,
        stopTokenIds: [],
        topLogprobs: 10,
      };
      const asked = prompts.slice(0, 5);
      const ask = async (engine: InferenceEngine, source: PolicySource) => {
        await engine.loadPolicy(source);
        return all(engine, source, asked, { sampling });
      };
      const without = await ask(embedded, base);
      const wanted = await ask(embedded, adapter);
      const found = await ask(vllm.engine, adapter);
      for (const i of asked.keys()) {
        const top = (results: typeof found) => results[i]!.topLogprobs![0]!;
        const moved = differences(top(without), top(found));
        assert.ok(
          moved.length === 0 || Math.max(...moved) > MIN_UPDATE_DIFFERENCE,
          `prompt ${i} has not moved`,
        );
        const errors = differences(top(wanted), top(found));
        assert.ok(
          errors.length >= 5 && Math.max(...errors) < MAX_LOGPROB_ERROR,
          `prompt ${i}: ${errors.join()}`,
        );
      }
    });

    test("greedy continuations are equal, and logprobs of what is sampled", async () => {
      const source = shared[0]!;
      await using vllm = disposable(engineOver());
      await vllm.engine.loadPolicy(source);
      await embedded.loadPolicy(source);
      const greedy = { temperature: 0, topP: 1, topK: 0, maxNewTokens: NEW_TOKENS, stopTokenIds: [] };
      const [ours, theirs] = await Promise.all(
        [embedded, vllm.engine].map((engine) => all(engine, source, prompts, { sampling: greedy })),
      );
      const others = prompts.filter((_, i) => ours![i]!.tokenIds.join() !== theirs![i]!.tokenIds.join());
      assert.ok(others.length <= MAX_OTHER_CONTINUATIONS, `${others.length} of ${prompts.length} differ`);

      // The likeliest tokens after each prompt, with their logprobs, under two sets of parameters.
      for (const shape of [
        { temperature: 1, topP: 1, topK: 0 },
        { temperature: 0.7, topP: 0.95, topK: 50 },
      ]) {
        const sampling = { ...shape, maxNewTokens: 1, stopTokenIds: [], topLogprobs: 10 };
        const [a, b] = await Promise.all(
          [embedded, vllm.engine].map((engine) => all(engine, source, prompts, { sampling })),
        );
        const errors = prompts.flatMap((_, i) =>
          differences(a![i]!.topLogprobs![0]!, b![i]!.topLogprobs![0]!),
        );
        assert.ok(errors.length > 5 * prompts.length, `${errors.length} tokens in common`);
        assert.ok(Math.max(...errors) < MAX_LOGPROB_ERROR, `${Math.max(...errors)}`);
      }
    });

    test("a new version from its folder gives the logprobs of its own weights", async () => {
      const [first, second] = [shared[0]!, { ...shared[1]!, model: shared[0]!.model }];
      await using vllm = disposable(engineOver());
      const sampling = {
        temperature: 1,
        topP: 1,
        topK: 0,
        maxNewTokens: 1,
        stopTokenIds: [],
        topLogprobs: 10,
      };
      const asked = prompts.slice(0, 5);
      await vllm.engine.loadPolicy(first);
      const before = await all(vllm.engine, first, asked, { sampling });
      await vllm.engine.loadPolicy(second);
      const after = await all(vllm.engine, second, asked, { sampling });
      assert.ok(after.every(({ versions }) => versions.every(({ version }) => version === second.version)));
      await embedded.loadPolicy(second);
      const wanted = await all(embedded, second, asked, { sampling });
      const top = (results: typeof after, i: number) => results[i]!.topLogprobs![0]!;
      for (const i of asked.keys()) {
        const moved = differences(top(before, i), top(after, i));
        assert.ok(
          moved.length === 0 || Math.max(...moved) > MIN_UPDATE_DIFFERENCE,
          `prompt ${i} has not moved`,
        );
        const errors = differences(top(wanted, i), top(after, i));
        assert.ok(
          errors.length >= 5 && Math.max(...errors) < MAX_LOGPROB_ERROR,
          `prompt ${i}: ${errors.join()}`,
        );
      }
    });
  });

  testInferenceEngine(
    "a real vLLM server",
    async () => {
      const engine = engineOver();
      const { vocabularySize } = await shapeOf(shared[0]!);
      return {
        engine,
        first: { ...shared[1]!, model: "m" },
        second: { ...shared[2]!, model: "m" },
        other: { ...shared[0]!, model: "n" },
        vocabularySize,
        maxContextTokens: CONTEXT_TOKENS,
        dispose: () => engine.close(),
      };
    },
    { isExact: false, isSingleModel: true },
  );
}

/**
 * Version 0 is the model itself; later ones have some of its weights changed by noise, so that they are models still.
 * Tokenizer files come along, which the server reads.
 */
async function variantOf(source: string, root: string, version: number): Promise<PolicySource> {
  const target = path.join(root, `version-${version}`);
  const { spec, weights, companions } = await loadModel(source);
  if (version > 0) {
    const noise = initialiseWeights(spec, version);
    for (const [name, values] of Object.entries(weights)) {
      if (!name.includes("mlp")) continue;
      const added = noise[name]!;
      for (let i = 0; i < values.length; i++) values[i]! += added[i]!;
    }
  }
  await saveCheckpoint(target, { spec, weights, companions });
  const written = new Set(await readdir(target));
  const names = (await readdir(source)).filter(
    (name) => !written.has(name) && !name.endsWith(".safetensors"),
  );
  for (const name of names) await copyFile(path.join(source, name), path.join(target, name));
  return { model: "m", version, folder: target, digest: await digestOfMerged(target) };
}

/** Adapters of a size that tells: on queries and values of every layer. */
async function adapterOf(base: PolicySource, root: string): Promise<PolicySource> {
  const target = path.join(root, "adapter");
  const { spec } = await loadModel(base.folder);
  const lora = resolveLora({ rank: 4, alpha: 8, targets: ["q_proj", "v_proj"] });
  const random = new Random(11);
  const weights = Object.fromEntries(
    listAdapterParameters(spec, lora).map(({ name, shape }) => [
      name,
      Float32Array.from({ length: shape[0]! * shape[1]! }, () => ADAPTER_SIZE * (random.next() - 0.5)),
    ]),
  );
  const { digest } = await saveAdapter(target, {
    spec,
    lora,
    weights,
    base: { place: base.folder },
    baseDigest: base.digest,
    companions: {},
  });
  return { model: base.model, version: base.version + 1, folder: target, digest };
}

async function shapeOf({ folder }: PolicySource): Promise<{ vocabularySize: number }> {
  return { vocabularySize: (await loadModel(folder)).spec.vocabSize };
}

let asked = 0;

function all(
  engine: InferenceEngine,
  { model: name }: PolicySource,
  prompts: readonly number[][],
  { sampling }: Pick<GenerateRequest, "sampling">,
) {
  return Promise.all(
    prompts.map((promptIds) =>
      engine.generate({
        id: `real-${asked++}`,
        model: name,
        promptIds,
        sampling,
        seed: 1,
        sessionId: "",
        groupId: "",
        versionRange: { lowest: 0, highest: 1_000 },
        deadlineMs: PATIENCE_MS,
      }),
    ),
  );
}

/** @returns the differences of the log-probabilities of the tokens that are in both lists. */
function differences(a: readonly TokenLogprob[], b: readonly TokenLogprob[]): number[] {
  const known = new Map(b.map(({ tokenId, logprob }) => [tokenId, logprob]));
  return a.flatMap(({ tokenId, logprob }) => {
    const other = known.get(tokenId);
    return other === undefined ? [] : [Math.abs(other - logprob)];
  });
}

function disposable(engine: ServerEngine) {
  return { engine, [Symbol.asyncDispose]: () => engine.close() };
}
