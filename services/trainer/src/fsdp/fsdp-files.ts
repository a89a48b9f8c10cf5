/**
 * The files of the engine on PyTorch workers: the whole model, or adapters beside a base. Headers of files are read and
 * written here, tensor data by the workers.
 *
 *   model.safetensors, config.json ...   as the embedded engine writes them: what replicas load
 *   optimizer/                           the optimizer's shards, see torch/hone_fsdp/state/moments.py
 */
import { stat } from "node:fs/promises";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import {
  digestOfMerged,
  inspectMerged,
  locateAdapter,
  locateMerged,
  type MergedPlace,
  requireBase,
  saveAdapter,
  saveAdapterWith,
  saveCheckpoint,
  saveCheckpointWith,
  type WeightWriter,
} from "@hone/checkpoint";
import { type AdaptedModel, initialiseAdapters, initialiseWeights } from "@hone/nn";
import { TrainingInputError } from "@hone/train";
import type { SavedState } from "../domain/step/training-engine.ts";
import type { AdapterConfig } from "../engine/engine-config.ts";
import { requireSameShape } from "../engine/trainer-files.ts";
import type { FsdpEngineConfig } from "./fsdp-config.ts";

/** Folder of the optimizer in a state, beside the weights. */
export const OPTIMIZER_FOLDER = "optimizer";

export abstract class FsdpFiles {
  readonly model: AdaptedModel;

  constructor(model: AdaptedModel) {
    this.model = model;
  }

  /** Locates the weights that training starts from. @param scratch an empty folder for new weights */
  abstract initialise(scratch: string): Promise<readonly MergedPlace[]>;
  /** Locates the weights of a folder that `save` wrote. @param isBaseNeeded whether untrained weights are needed, too */
  abstract load(folder: string, isBaseNeeded: boolean): Promise<readonly MergedPlace[]>;
  /** Writes what is trained. */
  abstract save(folder: string, write: WeightWriter): Promise<SavedState>;
  /** Writes a Hugging Face or PEFT folder for use outside of Hone. */
  abstract exportTo(folder: string, write: WeightWriter): Promise<SavedState>;
}

export function fsdpFiles(config: FsdpEngineConfig): FsdpFiles {
  return config.adapters === undefined
    ? new WholeModelFiles(config)
    : new AdapterFiles(config, config.adapters);
}

/** The folder of a state's optimizer; undefined where it was written without. */
export async function optimizerFolder(folder: string): Promise<string | undefined> {
  const found = path.join(folder, OPTIMIZER_FOLDER);
  return stat(found).then(
    () => found,
    () => undefined,
  );
}

class WholeModelFiles extends FsdpFiles {
  readonly #config: FsdpEngineConfig;

  constructor(config: FsdpEngineConfig) {
    super({ spec: config.spec });
    this.#config = config;
  }

  async initialise(scratch: string): Promise<readonly MergedPlace[]> {
    const { spec, start } = this.#config;
    if (start.kind === "checkpoint") return this.#locate(start.folder, start.base);
    await saveCheckpoint(scratch, { spec, weights: initialiseWeights(spec, start.seed), companions: {} });
    return this.#locate(scratch);
  }

  load(folder: string): Promise<readonly MergedPlace[]> {
    return this.#locate(folder);
  }

  save(folder: string, write: WeightWriter): Promise<SavedState> {
    const { spec, companions } = this.#config;
    return saveCheckpointWith(folder, { spec, companions }, write);
  }

  exportTo(folder: string, write: WeightWriter): Promise<SavedState> {
    const { spec, companions, origin } = this.#config;
    const model = { spec, companions, ...(origin === undefined ? {} : { origin }) };
    return saveCheckpointWith(folder, model, write);
  }

  async #locate(folder: string, base?: string): Promise<readonly MergedPlace[]> {
    const findBase = base === undefined ? undefined : async () => base;
    const { spec } = await inspectMerged(folder, findBase);
    requireSameShape(this.#config.spec, spec, folder);
    return locateMerged(folder, spec, findBase);
  }
}

class AdapterFiles extends FsdpFiles {
  readonly #config: FsdpEngineConfig;
  readonly #adapters: AdapterConfig;
  readonly #base: string;
  #baseDigest: string | undefined;

  constructor(config: FsdpEngineConfig, adapters: AdapterConfig) {
    super({ spec: config.spec, lora: adapters.lora });
    if (config.start.kind === "fresh") {
      throw new TrainingInputError(
        "adapters cannot be trained on a model made from scratch; give a checkpoint",
      );
    }
    this.#config = config;
    this.#adapters = adapters;
    this.#base = config.start.folder;
  }

  async initialise(scratch: string): Promise<readonly MergedPlace[]> {
    const { lora, seed } = this.#adapters;
    const weights = initialiseAdapters(this.#config.spec, lora, seed);
    await saveAdapter(scratch, { ...(await this.#state()), weights, base: { place: this.#base } });
    return this.load(scratch, true);
  }

  async load(folder: string, isBaseNeeded: boolean): Promise<readonly MergedPlace[]> {
    const { spec } = this.#config;
    const adapter = await locateAdapter(folder, spec);
    requireBase(folder, adapter.baseDigest, await this.#digest());
    if (!isDeepStrictEqual(adapter.lora, this.#adapters.lora)) {
      const wanted = JSON.stringify(this.#adapters.lora);
      const found = JSON.stringify(adapter.lora);
      throw new TrainingInputError(
        `the adapters in ${folder} are ${found}, but those of the run are ${wanted}`,
      );
    }
    if (!isBaseNeeded) return adapter.places;
    requireSameShape(spec, (await inspectMerged(this.#base)).spec, this.#base);
    return [...(await locateMerged(this.#base, spec)), ...adapter.places];
  }

  async save(folder: string, write: WeightWriter): Promise<SavedState> {
    const base = { place: this.#adapters.basePlace };
    return saveAdapterWith(folder, { ...(await this.#state()), base }, write);
  }

  async exportTo(folder: string, write: WeightWriter): Promise<SavedState> {
    const { exportedBase: base, exportedType: type } = this.#adapters;
    return saveAdapterWith(folder, { ...(await this.#state()), base, type }, write);
  }

  async #state() {
    const { spec, companions } = this.#config;
    return { spec, lora: this.#adapters.lora, companions, baseDigest: await this.#digest() };
  }

  /** Digest of the base, which is read once because it never changes. */
  async #digest(): Promise<string> {
    this.#baseDigest ??= await digestOfMerged(this.#base);
    return this.#baseDigest;
  }
}
