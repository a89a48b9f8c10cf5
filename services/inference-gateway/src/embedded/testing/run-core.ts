/** Runs an engine core over the model without weights to the end of its requests. */

import type { EngineGeneration, GenerateRequest } from "../../domain/inference-engine.ts";
import { RUN_COST } from "../embedded-engine.ts";
import { EngineCore, type EngineCoreOptions } from "../engine-core.ts";
import type { EngineEvent } from "../messages.ts";
import { HashRunner, type HashRunnerOptions } from "./hash-runner.ts";

const coreOptions: EngineCoreOptions = {
  maxSequences: 32,
  maxWaiting: 100,
  maxStepTokens: 64,
  runCost: RUN_COST,
  now: () => performance.now(),
};

let made = 0;
/** A request for the model `m`, with an id of its own. */
export function request(change: Partial<GenerateRequest> & { maxNewTokens?: number } = {}): GenerateRequest {
  const { maxNewTokens = 8, ...rest } = change;
  return {
    id: `call-${made++}`,
    model: "m",
    promptIds: [1, 2, 3],
    sampling: { temperature: 1, topP: 1, topK: 0, maxNewTokens, stopTokenIds: [0] },
    seed: 5,
    sessionId: "",
    groupId: "",
    versionRange: { lowest: 0, highest: 100 },
    deadlineMs: 60_000,
    ...rest,
  };
}

/** A core with version 1 of the model `m`. */
export async function coreWith(
  runnerOptions: HashRunnerOptions = {},
  changes: Partial<EngineCoreOptions> = {},
) {
  const core = new EngineCore({ ...coreOptions, ...changes });
  const runner = new HashRunner(runnerOptions);
  const installed = core.install("m", 1, runner);
  await core.step();
  await installed;
  return { core, runner };
}

/** Runs steps until everything has ended, and collects the events. */
export async function finish(core: EngineCore, events: EngineEvent[] = []) {
  while (core.hasWork) {
    await core.step();
    events.push(...core.takeEvents());
  }
  events.push(...core.takeEvents());
  const results = new Map<string, EngineGeneration>();
  for (const event of events) if (event.kind === "done") results.set(event.id, event.result);
  return { results, events };
}

/** What a request gets in an engine of its own. */
export async function alone(work: GenerateRequest): Promise<EngineGeneration> {
  const { core } = await coreWith();
  core.submit(work, false);
  return (await finish(core)).results.get(work.id)!;
}

export function sampleOf(result: EngineGeneration | undefined) {
  return { ids: result?.tokenIds, logprobs: result?.logprobs, finishReason: result?.finishReason };
}
