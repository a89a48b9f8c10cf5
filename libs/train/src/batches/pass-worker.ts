/** A thread that runs microbatches one after the other, with weights that it shares with its owner. */
import { parentPort, workerData } from "node:worker_threads";
import { describeError } from "@hone/core";
import { PassRunner, type PassWeights } from "./pass-runner.ts";
import type { PoolAnswer, PoolCall, PoolWorkerData } from "./pass-threads.ts";

const { model, options } = workerData as PoolWorkerData;
const runner = new PassRunner(model, options);
let weights: PassWeights = { weights: {}, quantized: undefined };

parentPort?.on("message", async (call: PoolCall) => {
  if (call.kind === "end") {
    parentPort?.close();
    return;
  }
  if (call.kind === "weights") {
    weights = call.weights;
    return;
  }
  const answer = await runner.run(weights, call.pass).then(
    (result): PoolAnswer => ({ kind: "result", result }),
    (error): PoolAnswer => ({ kind: "error", message: describeError(error) }),
  );
  parentPort?.postMessage(answer, answer.kind === "result" ? buffersOf(answer) : []);
});

/** The buffers of the gradients, which are transferred and not copied. */
function buffersOf({ result }: Extract<PoolAnswer, { kind: "result" }>): ArrayBuffer[] {
  return Object.values(result.gradients).map((gradient) => gradient.buffer as ArrayBuffer);
}
