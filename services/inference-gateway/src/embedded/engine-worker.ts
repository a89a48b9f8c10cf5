/**
 * The thread that generates: it runs the core's steps while there is work, and exchanges messages with the engine.
 *
 * W1: messages are handled between runs, and each handler only queues, so nothing changes during a step.
 * W2: the results of the steps are posted before the thread waits.
 */

import { parentPort, workerData } from "node:worker_threads";
import type { Weights } from "@hone/nn";
import { Quantization } from "@hone/rl";
import { exactEightBitType } from "@hone/tensor";
import type { StepFigures } from "../domain/generation-metrics.ts";
import type { LoadProgress, PolicySource } from "../domain/inference-engine.ts";
import { SlotMemory } from "./cache/row-memory.ts";
import { EngineCore, type EngineCoreOptions } from "./engine-core.ts";
import {
  type EngineEvent,
  encodeError,
  type FromWorker,
  sharedClock,
  type ToWorker,
  type WireEvent,
} from "./messages.ts";
import { OnnxRunner, type OnnxRunnerOptions } from "./onnx/onnx-runner.ts";
import { isLarge, runThreads } from "./onnx/run-threads.ts";
import { WeightSides } from "./onnx/weight-side.ts";
import { readPolicy } from "./policy/read-policy.ts";

/** The data with which the engine starts the thread. */
export interface EngineWorkerData {
  readonly core: Omit<EngineCoreOptions, "now">;
  readonly runner: OnnxRunnerOptions;
  readonly weights: WeightReading;
}

/** See {@link EmbeddedEngineOptions.weights}. */
export type WeightReading = "packed" | "measured";

/** Metrics of this many steps without events are posted together: about a second of a small model's decoding. */
const MAX_HELD_STEPS = 1_000;

const port = parentPort!;
const options = workerData as EngineWorkerData;
const core = new EngineCore({ ...options.core, now: sharedClock });
const sides = new WeightSides();
const memory = new SlotMemory();
let isClosed = false;
let postedLoad = "";
let steps: StepFigures[] = [];
let wake: (() => void) | undefined;

port.on("message", (message: ToWorker) => {
  handle(message);
  wake?.();
});

while (!isClosed) {
  if (core.hasWork) await timedStep();
  const events = core.takeEvents();
  const models = core.models();
  const load = models.map(({ model, running, waiting }) => `${model} ${running} ${waiting}`).join();
  if (events.length > 0 || load !== postedLoad || steps.length >= MAX_HELD_STEPS) {
    post({ kind: "step", events: events.map(encodeEvent), models, steps });
    steps = [];
    postedLoad = load;
  }
  if (core.hasWork || isClosed) continue;
  await new Promise<void>((resolve) => {
    wake = resolve;
  });
}
port.close();

async function timedStep(): Promise<void> {
  const startedAt = performance.now();
  const sequences = await core.step();
  // A step that only loaded or dropped a policy computed nothing.
  if (sequences > 0) steps.push({ ms: performance.now() - startedAt, sequences });
}

function handle(message: ToWorker): void {
  switch (message.kind) {
    case "submit":
      for (const { request, isStreaming, submittedAt } of message.requests) {
        core.submit(request, isStreaming, submittedAt);
      }
      return;
    case "abort":
      for (const id of message.ids) core.abort(id);
      return;
    case "load":
      void answer(message.call, load(message.call, message.source));
      return;
    case "unload":
      void answer(message.call, unload(message.model));
      return;
    case "close":
      void answer(message.call, close());
      return;
    default:
      message satisfies never;
  }
}

async function load(call: number, source: PolicySource): Promise<void> {
  const tell = progressOf(call);
  const eightBits = source.quantization === Quantization.int8 ? await exactEightBitType() : undefined;
  const { spec, weights } = await readPolicy(source, eightBits);
  tell("read");
  const canBeLeft = options.weights === "measured" && isLarge(spec) && eightBits === undefined;
  const isWeightLeft =
    canBeLeft && (await sides.isLeft(spec, weights as Weights, runThreads(spec, options.runner)));
  const runner = await OnnxRunner.create(spec, weights, {
    ...options.runner,
    isWeightLeft,
    eightBits,
    ownsWeights: true,
    memory,
  });
  const side = isWeightLeft ? "weights as they lie" : "weights packed";
  tell("built", eightBits === undefined ? side : `weights in eight bits, as ${eightBits}`);
  const installed = core.install(source.model, source.version, runner);
  wake?.();
  await installed;
  tell("swapped");
}

async function unload(model: string): Promise<void> {
  await core.unload(model);
  if (core.models().length === 0) memory.clear();
}

/** Posts each stage of a load when it ends. */
function progressOf(call: number): (stage: LoadProgress["stage"], detail?: string) => void {
  let since = performance.now();
  return function tell(stage, detail) {
    const now = performance.now();
    const progress = { stage, tookMs: now - since, ...(detail !== undefined && { detail }) };
    post({ kind: "progress", call, progress });
    since = now;
  };
}

async function close(): Promise<void> {
  const unloaded = core.models().map(({ model }) => unload(model));
  wake?.();
  await Promise.all(unloaded);
  isClosed = true;
}

async function answer(call: number, work: Promise<void>): Promise<void> {
  let failure: unknown;
  try {
    await work;
  } catch (error) {
    failure = error;
  }
  const error = failure === undefined ? undefined : encodeError(failure);
  post({ kind: "answer", call, error, models: core.models() });
  wake?.();
}

function post(message: FromWorker): void {
  port.postMessage(message);
}

function encodeEvent(event: EngineEvent): WireEvent {
  return event.kind === "failed" ? { ...event, error: encodeError(event.error) } : event;
}
