/** Checks whether the training of a run fits into the memory of the trainer. */

import { availableParallelism } from "node:os";
import { valueSpecOf } from "@hone/checkpoint";
import { hasCritic, hasReference, isTraining, problemMessage, type RunConfig } from "@hone/config";
import { type ModelSpec, resolveLora } from "@hone/nn";
import { isLargeModel, planTraining, type TrainingMemory, type TrainingPlan } from "@hone/train";
import type { Problem } from "./domain/report/run-event.ts";
import { DEFAULT_ROW_TOKENS } from "./engine/engine-config.ts";

/** The resources that a trainer may use. */
export interface EngineResources {
  /** 0 = one per core. */
  readonly engineThreads: number;
  readonly engineMemoryBytes: number;
}

export interface EngineFit extends TrainingPlan {
  readonly memory: TrainingMemory;
}

const MIB = 2 ** 20;

/** @returns the predicted peak memory for the longest samples that the run allows, and the plan that stays below the limit. */
export function fitEngine(spec: ModelSpec, config: RunConfig, resources: EngineResources): EngineFit {
  const { engineThreads, engineMemoryBytes } = resources;
  const { microbatchTokens } = config.trainer.engine;
  const extent = {
    threads: engineThreads === 0 ? availableParallelism() : engineThreads,
    // If it saves work, rows of a large model may be as long as a microbatch.
    rowTokens: Math.max(
      isLargeModel(spec) ? microbatchTokens : DEFAULT_ROW_TOKENS,
      config.rollout.maxContextTokens,
    ),
    microbatchTokens,
    lora:
      spec.head === "language" && "path" in config.model && config.model.lora !== undefined
        ? resolveLora(config.model.lora)
        : undefined,
    hasReference: spec.head === "language" && hasReference(config),
  };
  return planTraining(spec, extent, shareOf(config, engineMemoryBytes));
}

/** The memory of each of a run's engines: a critic is about as large as the policy, and gets half. */
function shareOf(config: RunConfig, bytes: number): number {
  return hasCritic(config) ? Math.floor(bytes / 2) : bytes;
}

/** @returns the problem of a run that cannot fit: the key that saves most memory when it is lowered, with the numbers. */
export function memoryProblems(spec: ModelSpec, config: RunConfig, resources: EngineResources): Problem[] {
  if (!isTraining(config) || config.trainer.engine.kind !== "onnx") return [];
  const specs = hasCritic(config) ? [spec, valueSpecOf(spec)] : [spec];
  const availableBytes = shareOf(config, resources.engineMemoryBytes);
  const memory = specs
    .map((each) => fitEngine(each, config, resources).memory)
    .find(({ total }) => total > availableBytes);
  if (memory === undefined) return [];
  const { maxContextTokens } = config.rollout;
  const { microbatchTokens } = config.trainer.engine;
  const [key, value] =
    memory.total - memory.activations > availableBytes
      ? (["model", "path" in config.model ? config.model.path : config.model.init] as const)
      : maxContextTokens >= microbatchTokens
        ? (["rollout.maxContextTokens", maxContextTokens] as const)
        : (["trainer.engine.microbatchTokens", microbatchTokens] as const);
  const { base, weights, reference, optimizer, gradients, activations, total } = memory;
  const held = reference === 0 ? "" : `reference ${mib(reference)}, `;
  const parts = `weights ${mib(weights)}, ${held}optimizer ${mib(optimizer)}, gradients ${mib(gradients)}`;
  const allowed =
    `so small that training fits into ${mib(availableBytes)} MiB (HONE_TRAINER_MEMORY_MIB${hasCritic(config) ? ", of which policy and critic have half each" : ""}); predicted are ${mib(total)} MiB: ${parts}, ` +
    `activations ${mib(activations)} for rows of ${maxContextTokens} and passes of ${microbatchTokens} tokens, ` +
    `everything else ${mib(base)}`;
  return [{ key, valueJson: JSON.stringify(value), allowed, message: problemMessage(key, value, allowed) }];
}

function mib(bytes: number): number {
  return Math.round(bytes / MIB);
}
