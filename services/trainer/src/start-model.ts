/** The model that a run starts from, without a run: what the command line plays with, and checks a run file's model with. */

import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { saveCheckpoint } from "@hone/checkpoint";
import { isTraining, ModelFolders, type RunConfig } from "@hone/config";
import { deriveSeed } from "@hone/core";
import type { HubSettings } from "@hone/hub";
import { initialiseWeights, type ModelConfig, specFromConfig } from "@hone/nn";
import { loadTokenizer } from "@hone/tokenizer";
import type { TrainerServiceConfig } from "./config.ts";
import { prepareModel } from "./domain/model/prepare-model.ts";
import { loadRunModel } from "./domain/model/run-model.ts";
import type { Problem } from "./domain/report/run-event.ts";
import { RunFolders } from "./domain/state/run-folders.ts";
import { type EngineResources, fitEngine, memoryProblems } from "./engine-memory.ts";
import { findModels } from "./find-models.ts";
import { TorchFinder } from "./fsdp/find-torch.ts";

export { readTrainerConfig } from "./config.ts";

export type StartModel =
  | { readonly kind: "refused"; readonly problems: readonly Problem[] }
  | {
      readonly kind: "ready";
      readonly config: ModelConfig;
      /** Absolute folder of the tokenizer. */
      readonly tokenizer: string;
      /** The weights as a folder; those of a model from scratch are made at the call. */
      weights(): Promise<StartWeights>;
    };

export interface StartWeights {
  readonly folder: string;
  /** Of a folder that holds adapters: the model that they are merged into. */
  readonly base?: string;
}

export interface StartModelOptions {
  /** Empty; takes the tokenizer, and the weights of a model from scratch. */
  readonly folder: string;
  readonly hub: HubSettings;
  readonly signal: AbortSignal;
  readonly onProgress?: (doneBytes: number, totalBytes: number) => void;
}

const RUN = "start";

/**
 * Finds (and fetches) the start model of a run and checks it, as admission does; it may lie in any folder, as who runs this
 * names it.
 * @throws {RetryableError} when the hub is away.
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
    tokenizer,
    weights: () => startWeights(run, folders, tokenizer),
  };
}

/**
 * What a run's training is predicted to take on the embedded engine, and what is wrong where that is not there; nothing for a run
 * without training, and for other engines.
 */
export function predictMemory(
  run: RunConfig,
  model: ModelConfig,
  resources: EngineResources,
): { readonly totalBytes: number; readonly problems: readonly Problem[] } {
  if (!isTraining(run) || run.trainer.engine.kind !== "onnx") return { totalBytes: 0, problems: [] };
  const spec = specFromConfig(model);
  const { memory } = fitEngine(spec, run, resources);
  return { totalBytes: memory.total, problems: memoryProblems(spec, run, resources) };
}

/** What is wrong where the engine that a run trains with is not there: PyTorch workers need their interpreter. */
export function checkTrainingEngine(
  run: RunConfig,
  { torch }: Pick<TrainerServiceConfig, "torch">,
): Promise<Problem[]> {
  return new TorchFinder(torch).problems(run);
}

/** Adapters begin as no change: their base is where a run of them starts. */
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
