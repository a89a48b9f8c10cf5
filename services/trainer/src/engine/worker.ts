/** The engine's thread: executes calls one after the other, in the order they arrive. */
import { parentPort, workerData } from "node:worker_threads";
import { describeError, fileRefusal, HoneError } from "@hone/core";
import { Quantization } from "@hone/rl";
import { exactEightBitType } from "@hone/tensor";
import type { OnnxEngineConfig } from "./engine-config.ts";
import type { EngineAnswer, EngineCall, EngineMethod, ToEngine } from "./messages.ts";
import { OnnxTrainer } from "./onnx-trainer.ts";

const config = workerData as OnnxEngineConfig;
const isQuantized = config.quantization === Quantization.int8;
const hasGradients = config.hasQuantizedGradients ?? false;
const eightBits = isQuantized ? { type: await exactEightBitType(), hasGradients } : undefined;
const engine = new OnnxTrainer(config, eightBits);
/** The last calls of a step. */
const SAVING: ReadonlySet<EngineMethod> = new Set(["save", "saveWeights"]);
let last: Promise<void> = Promise.resolve();

parentPort?.on("message", (message: ToEngine) => {
  if (message.kind === "end") {
    // A call that is under way fails at its next pass, as the engine is closed; nobody reads its answer any more.
    parentPort?.close();
    void engine.close();
    return;
  }
  last = last.then(async () => {
    parentPort?.postMessage(await answer(message));
    // The run waits for rollouts next. If this fails, so does the next call, which reports it.
    if (SAVING.has(message.method)) await engine.prepare().catch(() => undefined);
  });
});

async function answer({ id, method, args }: EngineCall): Promise<EngineAnswer> {
  try {
    const run = engine[method] as (...args: readonly unknown[]) => Promise<unknown>;
    return { id, kind: "result", value: await run.apply(engine, [...args]) };
  } catch (error) {
    const code = fileRefusal(error) ?? (error instanceof HoneError ? error.code : "ENGINE");
    return { id, kind: "error", code, message: describeError(error) };
  }
}
