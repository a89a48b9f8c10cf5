/** Creates the engines of a run: those of its policies, that of a critic, and those of teachers. */

import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { valueSpecOf } from "@hone/checkpoint";
import {
  type BoundKeys,
  CRITIC,
  hasCritic,
  isFirstVersion,
  learningPolicies,
  policyModelName,
  teacherName,
  trainingQuantization,
} from "@hone/config";
import { deriveSeed } from "@hone/core";
import { Quantization } from "@hone/rl";
import type { Logger } from "@hone/telemetry";
import { loadTokenizer } from "@hone/tokenizer";
import type { CriticEngine } from "./domain/critic/critic-engine.ts";
import type { Learner } from "./domain/learners/learner.ts";
import { loadOtherModel } from "./domain/model/other-models.ts";
import { loadRunModel, type RunModel } from "./domain/model/run-model.ts";
import type { RunRecord } from "./domain/run/run-record.ts";
import type { RunFolders } from "./domain/state/run-folders.ts";
import type { TrainingEngine } from "./domain/step/training-engine.ts";
import type { Teacher, Teachers } from "./domain/teachers/teacher.ts";
import { EndpointTeacher } from "./endpoint-teacher.ts";
import type { EngineConfig } from "./engine/engine-config.ts";
import { OnnxTrainingEngine } from "./engine/onnx-training-engine.ts";
import { ScoringTeacher } from "./engine/scoring-teacher.ts";
import { ValueEngine } from "./engine/value-engine.ts";
import { type EngineModel, type EngineResources, EngineRole, fitEngine } from "./engine-memory.ts";
import type { TorchFinder } from "./fsdp/find-torch.ts";
import { FsdpTrainingEngine } from "./fsdp/fsdp-training-engine.ts";

/** What is needed to create an engine. */
export interface EngineMeans extends EngineResources {
  readonly torch: TorchFinder;
  /** Keys of teachers behind an API. */
  readonly teacherKeys: BoundKeys;
  readonly logger: Logger;
}

/** The engine of a run's policy. */
export async function createEngine(
  run: RunRecord,
  folders: RunFolders,
  means: EngineMeans,
): Promise<TrainingEngine> {
  const { spec, origin, adapters, companions } = await modelOf(run, folders);
  const model = { role: EngineRole.policy, spec, companions, ...startOf(run, origin, adapters) };
  return engineOf(run, folders, means, model);
}

/** The engine of a run's critic, which starts with what it loads; undefined where the run has none. */
export async function createCritic(
  run: RunRecord,
  folders: RunFolders,
  means: EngineMeans,
): Promise<CriticEngine | undefined> {
  if (!hasCritic(run.config)) return undefined;
  const policy = await modelOf(run, folders);
  const isOwn = run.config.trainer.critic?.model !== undefined;
  const from = isOwn ? await loadOtherModel(folders, CRITIC) : undefined;
  const { companions } = policy;
  const spec = valueSpecOf((from ?? policy).spec);
  const start = { kind: "fresh", seed: deriveSeed(run.config.seed, "critic") } as const;
  const model = { role: EngineRole.critic, spec, companions, start };
  return new ValueEngine(await engineOf(run, folders, means, model), from?.folder);
}

/** The engines of a run's further policies that are trained, in the order of the run file. */
export async function createLearners(
  run: RunRecord,
  folders: RunFolders,
  means: EngineMeans,
): Promise<Learner[]> {
  const policies = learningPolicies(run.config);
  if (policies.length === 0) return [];
  const own = await modelOf(run, folders);
  const learners: Learner[] = [];
  try {
    for (const { name, model } of policies) {
      const from = model === undefined ? undefined : await loadOtherModel(folders, policyModelName(name));
      const start =
        from === undefined ? startOf(run, own.origin, adaptersBelow(own.adapters)) : startIn(from.folder);
      const { spec } = from ?? own;
      const role = EngineRole.policy;
      const engine = await engineOf(run, folders, means, {
        role,
        spec,
        companions: own.companions,
        ...start,
      });
      learners.push({ name, engine, from: from?.folder });
    }
    return learners;
  } catch (error) {
    await Promise.all(learners.map(({ engine }) => engine.close()));
    throw error;
  }
}

/** The adapters of a further policy, whose folder is two levels deeper than that of the run's own policy. */
function adaptersBelow(adapters: RunModel["adapters"]): RunModel["adapters"] {
  return adapters && { ...adapters, basePlace: `../../${adapters.basePlace}` };
}

function startIn(folder: string): Pick<EngineConfig, "start"> {
  return { start: { kind: "checkpoint", folder } };
}

/** What asks a run's teachers that are not version 0 of its policy. */
export async function createTeachers(
  run: RunRecord,
  folders: RunFolders,
  means: EngineMeans,
): Promise<Teachers> {
  const teachers = new Map<number, Teacher>();
  try {
    for (const [place, teacher] of run.config.algorithm.distillation?.teachers.entries() ?? []) {
      if (isFirstVersion(teacher)) continue;
      teachers.set(
        place,
        teacher.endpoint === undefined
          ? await teacherOfModel(run, folders, means, place)
          : new EndpointTeacher(teacher.endpoint, means.teacherKeys),
      );
    }
    return teachers;
  } catch (error) {
    await Promise.all([...teachers.values()].map((each) => each.close()));
    throw error;
  }
}

async function teacherOfModel(
  run: RunRecord,
  folders: RunFolders,
  means: EngineMeans,
  place: number,
): Promise<Teacher> {
  const { spec, folder } = await loadOtherModel(folders, teacherName(place));
  const start = { kind: "checkpoint", folder } as const;
  const model = { role: EngineRole.teacher, spec, companions: {}, start };
  return new ScoringTeacher(await engineOf(run, folders, means, model), folder);
}

async function modelOf(
  run: RunRecord,
  folders: RunFolders,
): Promise<RunModel & Pick<EngineConfig, "companions">> {
  const folder = folders.absolute(folders.tokenizer);
  const model = await loadRunModel(run.config, folders, await loadTokenizer(folder));
  const companions: Record<string, Uint8Array> = {};
  for (const name of await readdir(folder)) companions[name] = await readFile(path.join(folder, name));
  return { ...model, companions };
}

async function engineOf(
  run: RunRecord,
  folders: RunFolders,
  means: EngineMeans,
  { role, ...model }: EngineModel & Pick<EngineConfig, "companions" | "start" | "adapters" | "origin">,
): Promise<TrainingEngine> {
  const { engine } = run.config.trainer;
  const common: EngineConfig = { ...model, maxMicrobatchTokens: engine.microbatchTokens };
  if (engine.kind === "fsdp2") {
    const logger = means.logger.child({ runId: run.runId, epoch: run.epoch });
    const { plan, host } = await means.torch.plan(engine, logger);
    const startFolder = folders.absolute(folders.startWeights(run.epoch));
    return new FsdpTrainingEngine({ ...common, ...plan, startFolder }, host);
  }
  const quantization = role === EngineRole.policy ? trainingQuantization(run.config) : Quantization.none;
  const plan = fitEngine({ role, spec: model.spec }, run.config, means);
  return new OnnxTrainingEngine({
    ...common,
    sharing: plan.sharing,
    recomputedLayers: plan.recomputedLayers,
    reservedBytes: plan.reservedBytes,
    quantization,
    hasQuantizedGradients: engine.quantizedGradients,
    ...(means.engineThreads === 0 ? {} : { threads: means.engineThreads }),
  });
}

/** @returns the weights from which the engine starts, and which of them are trained. */
function startOf(
  { config }: RunRecord,
  origin: RunModel["origin"],
  adapters: RunModel["adapters"],
): Pick<EngineConfig, "start" | "origin" | "adapters"> {
  if (origin === undefined) return { start: { kind: "fresh", seed: deriveSeed(config.seed, "weights") } };
  if (adapters === undefined) {
    const { folder, base } = origin;
    return { start: { kind: "checkpoint", folder, ...(base === undefined ? {} : { base }) }, origin };
  }
  const { base, ...rest } = adapters;
  return {
    start: { kind: "checkpoint", folder: base },
    adapters: { ...rest, seed: deriveSeed(config.seed, "adapters") },
  };
}
