/**
 * Describes a run's model, from its run file and its folders.
 *
 *   runs/<run>/model/origin.json    for a pretrained model: the folder that its weights are read from, its config.json
 *                                   and the layout of its files, which exports repeat
 *   runs/<run>/model/base/          for adapters: the model that they belong to
 */

import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { type BaseReference, type CheckpointOrigin, ElementType, layoutOfType } from "@hone/checkpoint";
import type { ModelInit, PretrainedModel, RunConfig } from "@hone/config";
import { type LoraSpec, type ModelSpec, resolveLora, resolveModelSpec, specFromConfig } from "@hone/nn";
import type { RunFolders } from "../state/run-folders.ts";
import { keepBase } from "./keep-base.ts";

/** Where the weights of a pretrained model are, and what they are like. */
export interface PretrainedOrigin extends CheckpointOrigin {
  /** Absolute path. */
  readonly folder: string;
  /** Where `folder` holds adapters: the model that they are merged into, as an absolute path. */
  readonly base?: string;
  /** The model as the run file names it. */
  readonly reference: BaseReference;
}

export interface RunModel {
  readonly spec: ModelSpec;
  /** Absent for a model made from scratch. */
  readonly origin?: PretrainedOrigin;
  /** Absent where the model itself is trained. */
  readonly adapters?: RunAdapters;
}

/** Adapters that a run trains. */
export interface RunAdapters {
  readonly lora: LoraSpec;
  /** Absolute path of the base model's folder. */
  readonly base: string;
  /** The same folder as the run's states name it, relative to their own. */
  readonly basePlace: string;
  /** The base model as exports name it. */
  readonly exportedBase: BaseReference;
  /** Element type of the adapters in exports; undefined = float32. */
  readonly exportedType: ElementType | undefined;
}

/** The facts about a tokenizer that a model's shape depends on. */
export interface VocabularyOf {
  readonly vocabSize: number;
  readonly stopTokenIds: readonly number[];
  readonly specialTokens: Readonly<Record<string, string>>;
  tokenId(token: string): number | undefined;
}

const ORIGIN_FILE = "origin.json";
const BASE_FOLDER = "base";
/** Path from runs/<run>/state/<version>-<epoch> to the base model. */
const BASE_FROM_STATE = `../../model/${BASE_FOLDER}`;
const TYPES = { float32: ElementType.F32, float16: ElementType.F16, bfloat16: ElementType.BF16 } as const;

/** The model of a run that was admitted. */
export async function loadRunModel(
  { model }: RunConfig,
  folders: RunFolders,
  tokenizer: VocabularyOf,
): Promise<RunModel> {
  if ("init" in model) return { spec: specOfInit(model.init, tokenizer) };
  const text = await readFile(path.join(folders.absolute(folders.model), ORIGIN_FILE), "utf8");
  const origin = JSON.parse(text) as PretrainedOrigin;
  const adapters = adaptersOf(model, origin, folders);
  return {
    spec: specFromConfig(origin.config),
    origin: { ...origin, layout: layoutFor(model, origin) },
    ...(adapters === undefined ? {} : { adapters }),
  };
}

function adaptersOf(
  model: PretrainedModel,
  { reference }: PretrainedOrigin,
  folders: RunFolders,
): RunAdapters | undefined {
  if (model.lora === undefined) return undefined;
  return {
    lora: resolveLora(model.lora),
    base: path.join(folders.absolute(folders.model), BASE_FOLDER),
    basePlace: BASE_FROM_STATE,
    exportedBase: reference,
    exportedType: model.dtype === "auto" ? undefined : TYPES[model.dtype],
  };
}

/** Stores the origin of a pretrained model, and with adapters the model itself, for all later owners of the run. */
export async function writeOrigin(
  folders: RunFolders,
  origin: PretrainedOrigin,
  { lora }: PretrainedModel,
): Promise<void> {
  await folders.writeWhole(folders.model, async (folder) => {
    if (lora !== undefined) await keepBase(origin.folder, path.join(folder, BASE_FOLDER));
    await writeFile(path.join(folder, ORIGIN_FILE), `${JSON.stringify(origin)}\n`);
  });
}

/** The model of a run file under the name by which other programs find it. */
export function referenceOf({ path: place, revision }: PretrainedModel): BaseReference {
  return { place, ...(path.isAbsolute(place) ? {} : { revision }) };
}

/** The model that a run file describes, with the vocabulary of its tokenizer. */
export function specOfInit(init: ModelInit, tokenizer: VocabularyOf): ModelSpec {
  const padToken = tokenizer.specialTokens.pad_token;
  const padTokenId = padToken === undefined ? undefined : tokenizer.tokenId(padToken);
  return resolveModelSpec({
    family: init.architecture,
    vocabSize: tokenizer.vocabSize,
    hiddenSize: init.hiddenSize,
    numLayers: init.numLayers,
    numHeads: init.numHeads,
    ...(init.numKvHeads === undefined ? {} : { numKeyValueHeads: init.numKvHeads }),
    ...(init.headDim === undefined ? {} : { headDim: init.headDim }),
    ...(init.intermediateSize === undefined ? {} : { intermediateSize: init.intermediateSize }),
    ropeTheta: init.ropeTheta,
    rmsNormEps: init.rmsNormEps,
    maxPositions: init.maxPositions,
    eosTokenIds: tokenizer.stopTokenIds,
    ...(padTokenId === undefined ? {} : { padTokenId }),
  });
}

/** The layout of exports, with the element type that the run file asks for. */
function layoutFor({ dtype }: PretrainedModel, { layout }: CheckpointOrigin): CheckpointOrigin["layout"] {
  return dtype === "auto" ? layout : layoutOfType(layout, TYPES[dtype]);
}
