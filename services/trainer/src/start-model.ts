/** Gives the command line the model that a run starts from, without a run: to try it, and to check the run file's model. */

import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { saveCheckpoint } from "@hone/checkpoint";
import { isTraining, ModelFolders, type RunConfig } from "@hone/config";
import { deriveSeed } from "@hone/core";
import type { HubSettings } from "@hone/hub";
import { initialiseWeights, type ModelConfig, type ModelSpec, specFromConfig } from "@hone/nn";
import { loadTokenizer } from "@hone/tokenizer";
import type { TrainerServiceConfig } from "./config.ts";
import { prepareModel } from "./domain/model/prepare-model.ts";
import { loadRunModel } from "./domain/model/run-model.ts";
import type { Problem } from "./domain/report/run-event.ts";
import { RunFolders } from "./domain/state/run-folders.ts";
import { type EngineResources, EngineRole, fitEngine, memoryProblems } from "./engine-memory.ts";
import { findModels } from "./find-models.ts";
import { TorchFinder } from "./fsdp/find-torch.ts";

export { readTrainerConfig } from "./config.ts";

export type StartModel =
  | { readonly kind: "refused"; readonly problems: readonly Problem[] }
  | {
      readonly kind: "ready";
      readonly config: ModelConfig;
      /** The shapes of the run's other models, by name. */
      readonly others: ReadonlyMap<string, ModelSpec>;
      /** Absolute path of the folder with the tokenizer. */
      readonly tokenizer: string;
      /** Gives the folder of the weights. The weights of a model from scratch are created by this call. */
      weights(): Promise<StartWeights>;
    };

export interface StartWeights {
  readonly folder: string;
  /** If the folder holds adapters, the model that they are merged into. */
  readonly base?: string;
}

export interface StartModelOptions {
  /** An empty folder for the tokenizer, and for the weights of a model from scratch. */
  readonly folder: string;
  readonly hub: HubSettings;
  readonly signal: AbortSignal;
  readonly onProgress?: (doneBytes: number, totalBytes: number) => void;
}

const RUN = "start";

/**
 * Finds the start model of a run, downloads it if necessary and checks it in the same way as admission does. The model may lie
 * in any folder, because the user of this machine chose it.
 * @throws {RetryableError} when the hub is unavailable.
 */
export async function openStartModel(run: RunConfig, options: StartModelOptions): Promise<StartModel> {
  const { hub, signal, onProgress = () => undefined } = options;
  const folders = new RunFolders(options.folder, RUN);
  const prepared = await prepareModel(run, folders, findModels(hub, ModelFolders.everywhere), {
    signal,
    onProgress,
  });
  if (prepared.kind === "refused") return prepared;
  const tokenizer = folders.absolute(folders.tokenizer);
  return {
    kind: "ready",
    config: prepared.config,
    others: prepared.others,
    tokenizer,
    weights: () => startWeights(run, folders, tokenizer),
  };
}

/**
 * @returns the memory that training is predicted to use on the embedded engine, and the problems if the machine has less. For
 *   a run without training and for other engines: 0 bytes and no problems.
 */
export function predictMemory(
  run: RunConfig,
  { config: model, others }: Pick<Extract<StartModel, { kind: "ready" }>, "config" | "others">,
  resources: EngineResources,
): { readonly totalBytes: number; readonly problems: readonly Problem[] } {
  if (!isTraining(run) || run.trainer.engine.kind !== "onnx") return { totalBytes: 0, problems: [] };
  const spec = specFromConfig(model);
  const { memory } = fitEngine({ role: EngineRole.policy, spec }, run, resources);
  return { totalBytes: memory.total, problems: memoryProblems(spec, run, resources, others) };
}

/** @returns the problems if the run's training engine is not available here: PyTorch workers need a Python interpreter. */
export function checkTrainingEngine(
  run: RunConfig,
  { torch }: Pick<TrainerServiceConfig, "torch">,
): Promise<Problem[]> {
  return new TorchFinder(torch).problems(run);
}

/** New adapters change nothing, so a run that trains adapters starts from their base model. */
async function startWeights(run: RunConfig, folders: RunFolders, tokenizer: string): Promise<StartWeights> {
  const { spec, origin } = await loadRunModel(run, folders, await loadTokenizer(tokenizer));
  if (origin !== undefined) {
    return { folder: origin.folder, ...(origin.base !== undefined && { base: origin.base }) };
  }
  const companions: Record<string, Uint8Array> = {};
  for (const name of await readdir(tokenizer)) companions[name] = await readFile(path.join(tokenizer, name));
  const weights = initialiseWeights(spec, deriveSeed(run.seed, "weights"));
  return {
    folder: await folders.writeWhole(folders.state(0, 0), async (folder) => {
      await saveCheckpoint(folder, { spec, weights, companions });
      return folders.absolute(folders.state(0, 0));
    }),
  };
}
