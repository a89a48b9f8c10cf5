/**
 * The engine as a program that takes calls, which the bench compares with other engines.
 *
 *   node services/inference-gateway/bench/engine-calls.ts --model FOLDER [--threads 0] [--cacheMib 512]
 *        [--quantization none|int8]
 *
 * With 0 threads the number depends on the model. Prints `ready` once the folder is loaded as version 0. Then each
 * line of its input is a call in JSON, and is answered by one line: a load by its seconds, a batch by the seconds from its
 * first request to its last answer.
 */

import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { digestOfWeights } from "@hone/checkpoint";
import { Quantization } from "@hone/rl";
import { EmbeddedEngine } from "../src/embedded/embedded-engine.ts";

/** Loads a version. */
interface LoadCall {
  readonly kind: "load";
  readonly version: number;
  readonly folder: string;
  readonly digest: string;
}

/** Samples of each prompt, by the last version, at temperature 1 and of one length. */
interface GenerateCall {
  readonly kind: "generate";
  readonly prompts: readonly (readonly number[])[];
  readonly samples: number;
  readonly newTokens: number;
  /** Conversations whose next turns these are, one for each prompt; absent = none goes on. */
  readonly sessions?: readonly string[];
  readonly seed: number;
}

const MODEL = "m";
const MIB = 2 ** 20;
const CALL_DEADLINE_MS = 600_000;

const { values } = parseArgs({
  options: {
    model: { type: "string" },
    threads: { type: "string", default: "0" },
    // The default of the gateway.
    cacheMib: { type: "string", default: "512" },
    quantization: { type: "string", default: Quantization.none },
  },
});
if (values.model === undefined) throw new Error("Give the folder of a model with --model");
const quantization = values.quantization as Quantization;
const engine = new EmbeddedEngine({
  maxCacheBytes: Number(values.cacheMib) * MIB,
  intraOpThreads: Number(values.threads),
});
let version = 0;
let generations = 0;
await engine.loadPolicy({
  model: MODEL,
  version,
  folder: values.model,
  digest: await digestOfWeights(values.model),
  quantization,
});
console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const call = JSON.parse(line) as LoadCall | GenerateCall;
  console.log(JSON.stringify(call.kind === "load" ? await load(call) : await generate(call)));
}
await engine.close();

async function load({ version: loaded, folder, digest }: LoadCall) {
  const begun = performance.now();
  await engine.loadPolicy({ model: MODEL, version: loaded, folder, digest, quantization });
  version = loaded;
  return { seconds: secondsSince(begun) };
}

/** Answers are in the order of the prompts, and the samples of a prompt are adjacent. */
async function generate({ prompts, samples, newTokens, sessions, seed }: GenerateCall) {
  const begun = performance.now();
  const results = await Promise.all(
    prompts.flatMap((promptIds, prompt) =>
      Array.from({ length: samples }, (_, sample) =>
        engine.generate({
          id: String(generations++),
          model: MODEL,
          promptIds,
          sampling: { temperature: 1, topP: 1, topK: 0, maxNewTokens: newTokens, stopTokenIds: [] },
          seed: seed + prompt * samples + sample,
          sessionId: sessions?.[prompt] ?? "",
          groupId: samples > 1 ? `${seed}-${prompt}` : "",
          versionRange: { lowest: version, highest: version },
          deadlineMs: CALL_DEADLINE_MS,
        }),
      ),
    ),
  );
  return {
    seconds: secondsSince(begun),
    ids: results.map(({ tokenIds }) => tokenIds),
    logprobs: results.map(({ logprobs }) => logprobs),
    prefillTokens: results.reduce((sum, { metrics }) => sum + metrics.prefillTokens, 0),
  };
}

function secondsSince(begun: number): number {
  return (performance.now() - begun) / 1_000;
}
