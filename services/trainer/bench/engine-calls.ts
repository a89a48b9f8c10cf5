/**
 * The training engine behind its port as a program that is called: what the bench compares with other trainers.
 *
 *   node services/trainer/bench/engine-calls.ts --model FOLDER --state FOLDER [--longest 1024]
 *        [--memoryMib N] [--quantization none|int8]
 *
 * The engine is made as the service makes it, for samples of at most --longest tokens, on every core, planned to fit into
 * --memoryMib (all that the machine has). Prints `ready` once
 * it holds the model's weights. Then each line of its input is a call in JSON, and is answered by one line: `train` by
 * the seconds of an update, `save` by those until the version is on the disk, below --state, with the place and the digest
 * that the service would publish.
 */

import { availableParallelism, totalmem } from "node:os";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { inspectModel } from "@hone/checkpoint";
import { Quantization } from "@hone/rl";
import { ADAMW_DEFAULTS, planTraining, type TrainingSample } from "@hone/train";
import { RunFolders } from "../src/domain/state/run-folders.ts";
import { stateInterval } from "../src/domain/state/state-cadence.ts";
import { DEFAULT_MICROBATCH_TOKENS } from "../src/engine/engine-config.ts";
import { OnnxTrainingEngine } from "../src/engine/onnx-training-engine.ts";

interface TrainCall {
  readonly kind: "train";
  readonly samples: readonly TrainingSample[];
}

interface SaveCall {
  readonly kind: "save";
  readonly version: number;
}

/** Small, so that any number of steps leaves a model that generates. */
const LEARNING_RATE = 1e-6;
const EPOCH = 1;

const { values } = parseArgs({
  options: {
    model: { type: "string" },
    state: { type: "string" },
    longest: { type: "string", default: "1024" },
    memoryMib: { type: "string" },
    quantization: { type: "string", default: Quantization.none },
  },
});
if (values.model === undefined || values.state === undefined) {
  throw new Error("Cannot train as --model and --state must name folders");
}
const folders = new RunFolders(values.state, "bench");
const { spec, companions, origin } = await inspectModel(values.model);
const quantization = values.quantization as Quantization;
/** With int8 all that can be is computed in eight bits. */
const hasQuantizedGradients = quantization === Quantization.int8;
const extent = {
  quantizedCopies: hasQuantizedGradients ? 2 : 0,
  threads: availableParallelism(),
  rowTokens: Number(values.longest),
  microbatchTokens: DEFAULT_MICROBATCH_TOKENS,
};
const memoryBytes = values.memoryMib === undefined ? totalmem() : Number(values.memoryMib) * 2 ** 20;
const plan = planTraining(spec, extent, memoryBytes);
const engine = new OnnxTrainingEngine({
  spec,
  companions,
  origin,
  start: { kind: "checkpoint", folder: values.model },
  sharing: plan.sharing,
  recomputedLayers: plan.recomputedLayers,
  reservedBytes: plan.reservedBytes,
  quantization,
  hasQuantizedGradients,
});
await engine.initialise();
/** The last state with the optimizer. */
let recovery: string | undefined;
console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const call = JSON.parse(line) as TrainCall | SaveCall;
  const begun = performance.now();
  const done = call.kind === "train" ? await train(call) : await save(call);
  console.log(JSON.stringify({ ...done, seconds: (performance.now() - begun) / 1_000 }));
}
await engine.close();

async function train({ samples }: TrainCall) {
  const { loss, gradNorm, sampleTokenCount, packedTokenCount } = await engine.trainMinibatch({
    samples,
    terms: [{ name: "ppo_clip", constants: { clipLow: 0.2, clipHigh: 0.28 } }],
    entropyCoefficient: 0,
    optimizer: { ...ADAMW_DEFAULTS, learningRate: LEARNING_RATE },
    maxGradNorm: 1,
  });
  return { loss, gradNorm, sampleTokenCount, packedTokenCount };
}

/** With the optimizer as often as the service writes it. The state before is kept until the next one. */
async function save({ version }: SaveCall) {
  const folder = folders.state(version, EPOCH);
  const isWhole = version % stateInterval(engine) === 0;
  const { digest } = await folders.writeWhole(folder, (unfinished) =>
    isWhole ? engine.save(unfinished) : engine.saveWeights(unfinished),
  );
  if (isWhole) recovery = folder;
  await folders.removeOldStates({ committed: folder, recovery, oldestVersion: version - 1, epoch: EPOCH });
  return { digest, folder: folders.absolute(folder) };
}
