/**
 * The files of the embedded engine: the whole model, or adapters beside a base that is read once and never changes.
 * Weights lie in shared memory, where the engine's threads read them.
 */

import { isDeepStrictEqual } from "node:util";
import {
  type AdamWState,
  loadAdapter,
  loadMerged,
  loadOptimizer,
  requireBase,
  saveAdapter,
  saveCheckpoint,
} from "@hone/checkpoint";
import {
  type AdaptedModel,
  allocateShared,
  initialiseAdapters,
  initialiseWeights,
  listTrained,
  type ModelSpec,
  type ParameterInfo,
  shareWeights,
  type Weights,
} from "@hone/nn";
import { TrainingInputError } from "@hone/train";
import type { SavedState } from "../domain/step/training-engine.ts";
import type { AdapterConfig, OnnxEngineConfig } from "./engine-config.ts";

export abstract class TrainerFiles {
  readonly model: AdaptedModel;
  /** The trained parameters. */
  readonly parameters: readonly ParameterInfo[];

  constructor(model: AdaptedModel) {
    this.model = model;
    this.parameters = listTrained(model);
  }

  /** The weights that training starts from. */
  abstract initialise(): Promise<Weights>;
  /** The weights of a folder that `save` wrote. */
  abstract load(folder: string): Promise<Weights>;
  /** Writes the trained weights bit for bit, and the optimizer where one is given. */
  abstract save(folder: string, weights: Weights, optimizer?: AdamWState): Promise<SavedState>;
  /** Writes a Hugging Face or PEFT folder for use outside of Hone. */
  abstract exportTo(folder: string, weights: Weights): Promise<SavedState>;

  /** The optimizer's state in a folder; undefined where it has none. */
  loadOptimizer(folder: string): Promise<AdamWState | undefined> {
    return loadOptimizer(folder, this.parameters);
  }
}

export function trainerFiles(config: OnnxEngineConfig): TrainerFiles {
  return config.adapters === undefined
    ? new WholeModelFiles(config)
    : new AdapterFiles(config, config.adapters);
}

class WholeModelFiles extends TrainerFiles {
  readonly #config: OnnxEngineConfig;

  constructor(config: OnnxEngineConfig) {
    super({ spec: config.spec });
    this.#config = config;
  }

  initialise(): Promise<Weights> {
    const { spec, start } = this.#config;
    return start.kind === "fresh"
      ? Promise.resolve(shareWeights(initialiseWeights(spec, start.seed)))
      : this.load(start.folder, start.base);
  }

  async load(folder: string, base?: string): Promise<Weights> {
    const model = await loadMerged(folder, { allocate: allocateShared, ...findBaseIn(base) });
    requireSameShape(this.#config.spec, model.spec, folder);
    return model.weights;
  }

  save(folder: string, weights: Weights, optimizer?: AdamWState): Promise<SavedState> {
    const { spec, companions } = this.#config;
    return saveCheckpoint(folder, { spec, weights, companions }, optimizer);
  }

  exportTo(folder: string, weights: Weights): Promise<SavedState> {
    const { spec, companions, origin } = this.#config;
    return saveCheckpoint(folder, { spec, weights, companions, ...(origin === undefined ? {} : { origin }) });
  }
}

interface Base {
  readonly weights: Weights;
  readonly digest: string;
}

class AdapterFiles extends TrainerFiles {
  readonly #config: OnnxEngineConfig;
  readonly #adapters: AdapterConfig;
  #base: Base | undefined;

  constructor(config: OnnxEngineConfig, adapters: AdapterConfig) {
    super({ spec: config.spec, lora: adapters.lora });
    this.#config = config;
    this.#adapters = adapters;
  }

  async initialise(): Promise<Weights> {
    const { lora, seed } = this.#adapters;
    const { weights } = await this.#loadBase();
    return { ...weights, ...shareWeights(initialiseAdapters(this.#config.spec, lora, seed)) };
  }

  async load(folder: string): Promise<Weights> {
    const { weights, digest } = await this.#loadBase();
    const adapter = await loadAdapter(folder, this.#config.spec, allocateShared);
    requireBase(folder, adapter.baseDigest, digest);
    if (!isDeepStrictEqual(adapter.lora, this.#adapters.lora)) {
      const wanted = JSON.stringify(this.#adapters.lora);
      const found = JSON.stringify(adapter.lora);
      throw new TrainingInputError(
        `the adapters in ${folder} are ${found}, but those of the run are ${wanted}`,
      );
    }
    return { ...weights, ...adapter.weights };
  }

  save(folder: string, weights: Weights, optimizer?: AdamWState): Promise<SavedState> {
    const base = { place: this.#adapters.basePlace };
    return saveAdapter(folder, { ...this.#stateOf(weights), base }, optimizer);
  }

  exportTo(folder: string, weights: Weights): Promise<SavedState> {
    const { exportedBase: base, exportedType: type } = this.#adapters;
    return saveAdapter(folder, { ...this.#stateOf(weights), base, type });
  }

  #stateOf(weights: Weights) {
    const { spec, companions } = this.#config;
    return { spec, lora: this.#adapters.lora, weights, companions, baseDigest: this.#readBase().digest };
  }

  /** Read once: it never changes. */
  async #loadBase(): Promise<Base> {
    if (this.#base !== undefined) return this.#base;
    const { start, spec } = this.#config;
    if (start.kind === "fresh") {
      throw new TrainingInputError(
        "adapters cannot be trained on a model made from scratch; give a checkpoint",
      );
    }
    const { weights, digest, spec: found } = await loadMerged(start.folder, { allocate: allocateShared });
    requireSameShape(spec, found, start.folder);
    this.#base = { weights, digest };
    return this.#base;
  }

  #readBase(): Base {
    if (this.#base === undefined)
      throw new TrainingInputError("the base of the adapters is not loaded, so they cannot be saved");
    return this.#base;
  }
}

function findBaseIn(folder: string | undefined) {
  return folder === undefined ? {} : { findBase: async () => folder };
}

/** @throws TrainingInputError naming the field in which the model of a folder differs. */
export function requireSameShape(wanted: ModelSpec, found: ModelSpec, folder: string): void {
  for (const field of Object.keys(wanted) as (keyof ModelSpec)[]) {
    if (isDeepStrictEqual(wanted[field], found[field])) continue;
    const [is, expected] = [JSON.stringify(found[field]), JSON.stringify(wanted[field])];
    throw new TrainingInputError(
      `the ${field} of the model in ${folder} is ${is}, but that of the run is ${expected}`,
    );
  }
}
