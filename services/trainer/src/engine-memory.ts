/** Checks whether the training of a run fits into the memory of the trainer. */

import { availableParallelism } from "node:os";
import { valueSpecOf } from "@hone/checkpoint";
import {
  CRITIC,
  hasCritic,
  hasReference,
  isTraining,
  learningPolicies,
  otherModels,
  policyModelName,
  type RunConfig,
  trainingQuantization,
} from "@hone/config";
import { type ModelSpec, resolveLora } from "@hone/nn";
import { Quantization } from "@hone/rl";
import { isLargeModel, planTraining, type TrainingMemory, type TrainingPlan } from "@hone/train";
import { type Problem, problemOf } from "./domain/report/run-event.ts";
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

/** What an engine of a run is for. */
export const EngineRole = { policy: "policy", critic: "critic", teacher: "teacher" } as const;
export type EngineRole = (typeof EngineRole)[keyof typeof EngineRole];

/** The model of one of a run's engines. */
export interface EngineModel {
  readonly role: EngineRole;
  readonly spec: ModelSpec;
}

/** @returns the predicted peak memory for the longest samples that the run allows, and the plan that stays below the limit. */
export function fitEngine(
  { role, spec }: EngineModel,
  config: RunConfig,
  resources: EngineResources,
): EngineFit {
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
      role === EngineRole.policy && "path" in config.model && config.model.lora !== undefined
        ? resolveLora(config.model.lora)
        : undefined,
    hasReference: role === EngineRole.policy && hasReference(config),
    quantizedCopies: role === EngineRole.policy ? quantizedCopies(config) : 0,
    isTrained: role !== EngineRole.teacher,
  };
  return planTraining(spec, extent, shareOf(config, engineMemoryBytes));
}

/** A copy of the matrices for the forward pass, and another one for gradients. */
function quantizedCopies(config: RunConfig): number {
  if (trainingQuantization(config) === Quantization.none) return 0;
  const { engine } = config.trainer;
  return engine.kind === "onnx" && engine.quantizedGradients ? 2 : 1;
}

/** What the engine of another model is for. @param name as `otherModels` gives it. */
function roleOf(name: string): EngineRole {
  if (name === CRITIC) return EngineRole.critic;
  return name.startsWith(policyModelName("")) ? EngineRole.policy : EngineRole.teacher;
}

/** The number of engines of a run, each of which gets an equal part of the memory. */
function engineCount(config: RunConfig): number {
  const teachers = otherModels(config).filter(({ name }) => roleOf(name) === EngineRole.teacher);
  return 1 + learningPolicies(config).length + Number(hasCritic(config)) + teachers.length;
}

function shareOf(config: RunConfig, bytes: number): number {
  return Math.floor(bytes / engineCount(config));
}

/** A model with the key of the run file that names it. */
interface NamedModel extends EngineModel {
  readonly key: string;
  readonly value: unknown;
}

/** The models of a run's engines. @param others the shapes of its other models, by name. */
function modelsOf(
  policy: ModelSpec,
  config: RunConfig,
  others: ReadonlyMap<string, ModelSpec>,
): NamedModel[] {
  const value = "path" in config.model ? config.model.path : config.model.init;
  const own: NamedModel = { role: EngineRole.policy, spec: policy, key: "model", value };
  const found = otherModels(config).flatMap(({ name, key, place }): NamedModel[] => {
    const spec = others.get(name);
    if (spec === undefined) return [];
    const named = { key, value: place.path };
    const role = roleOf(name);
    return [{ role, spec: role === EngineRole.critic ? valueSpecOf(spec) : spec, ...named }];
  });
  const isOwnCritic = hasCritic(config) && !others.has(CRITIC);
  return isOwnCritic
    ? [own, { ...own, role: EngineRole.critic, spec: valueSpecOf(policy) }, ...found]
    : [own, ...found];
}

/**
 * @param others the shapes of the run's other models, by their names in `otherModels`.
 * @returns the problem of a run that cannot fit: the key that saves most memory when it is lowered, with the numbers.
 */
export function memoryProblems(
  policy: ModelSpec,
  config: RunConfig,
  resources: EngineResources,
  others: ReadonlyMap<string, ModelSpec> = new Map(),
): Problem[] {
  if (!isTraining(config) || config.trainer.engine.kind !== "onnx") return [];
  const count = engineCount(config);
  const availableBytes = shareOf(config, resources.engineMemoryBytes);
  const tooLarge = modelsOf(policy, config, others)
    .map((model) => ({ ...model, memory: fitEngine(model, config, resources).memory }))
    .find(({ memory }) => memory.total > availableBytes);
  if (tooLarge === undefined) return [];
  const { memory } = tooLarge;
  const { maxContextTokens } = config.rollout;
  const { microbatchTokens } = config.trainer.engine;
  const [key, value] =
    memory.total - memory.activations > availableBytes
      ? ([tooLarge.key, tooLarge.value] as const)
      : maxContextTokens >= microbatchTokens
        ? (["rollout.maxContextTokens", maxContextTokens] as const)
        : (["trainer.engine.microbatchTokens", microbatchTokens] as const);
  const { base, weights, reference, optimizer, gradients, activations, total } = memory;
  const held = reference === 0 ? "" : `reference ${mib(reference)}, `;
  const parts = `weights ${mib(weights)}, ${held}optimizer ${mib(optimizer)}, gradients ${mib(gradients)}`;
  const allowed =
    `so small that training fits into ${mib(availableBytes)} MiB (HONE_TRAINER_MEMORY_MIB${count > 1 ? `, of which each of the run's ${count} models has an equal part` : ""}); predicted are ${mib(total)} MiB: ${parts}, ` +
    `activations ${mib(activations)} for rows of ${maxContextTokens} and passes of ${microbatchTokens} tokens, ` +
    `everything else ${mib(base)}`;
  return [problemOf(key, value, allowed)];
}

function mib(bytes: number): number {
  return Math.round(bytes / MIB);
}
