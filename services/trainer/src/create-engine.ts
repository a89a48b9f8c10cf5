/** Makes the training engine of a run. */

import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { deriveSeed } from "@hone/core";
import { loadTokenizer } from "@hone/tokenizer";
import type { RunFolders } from "./domain/run-folders.ts";
import { loadRunModel, type RunModel } from "./domain/run-model.ts";
import type { RunRecord } from "./domain/run-record.ts";
import type { TrainingEngine } from "./domain/training-engine.ts";
import type { OnnxEngineConfig } from "./engine/engine-config.ts";
import { OnnxTrainingEngine } from "./engine/onnx-training-engine.ts";
import { type EngineResources, fitEngine } from "./engine-memory.ts";

export async function createEngine(
  run: RunRecord,
  folders: RunFolders,
  resources: EngineResources,
): Promise<TrainingEngine> {
  const folder = folders.absolute(folders.tokenizer);
  const { spec, origin, adapters } = await loadRunModel(run.config, folders, await loadTokenizer(folder));
  const companions: Record<string, Uint8Array> = {};
  for (const name of await readdir(folder)) companions[name] = await readFile(path.join(folder, name));
  const plan = fitEngine(spec, run.config, resources);
  return new OnnxTrainingEngine({
    spec,
    companions,
    sharing: plan.sharing,
    recomputedLayers: plan.recomputedLayers,
    maxMicrobatchTokens: run.config.trainer.engine.microbatchTokens,
    ...startOf(run, origin, adapters),
    ...(resources.engineThreads === 0 ? {} : { threads: resources.engineThreads }),
  });
}

/** What the engine starts from, and what of it is trained. */
function startOf(
  { config }: RunRecord,
  origin: RunModel["origin"],
  adapters: RunModel["adapters"],
): Pick<OnnxEngineConfig, "start" | "origin" | "adapters"> {
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
