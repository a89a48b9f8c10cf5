/**
 * What a run's model is, from its run file and its folders.
 *
 *   runs/<run>/model/origin.json    of a pretrained model: the folder that its weights are read from, its config.json
 *                                   and how its files are laid out, which exports repeat
 *   runs/<run>/model/base/          of adapters: the model that they belong to
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
  /** Absolute. */
  readonly folder: string;
  /** Of a folder that holds adapters, absolute: the model that they are merged into. */
  readonly base?: string;
  /** What the run file calls it. */
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
  /** Folder of the base, absolute. */
  readonly base: string;
  /** The same, as the run's states say it, relative to their folders. */
  readonly basePlace: string;
  /** What exports call the base. */
  readonly exportedBase: BaseReference;
  /** How exports store the adapters; undefined = float32. */
  readonly exportedType: ElementType | undefined;
}

/** What this needs to know of a tokenizer. */
export interface VocabularyOf {
  readonly vocabSize: number;
  readonly stopTokenIds: readonly number[];
  readonly specialTokens: Readonly<Record<string, string>>;
  tokenId(token: string): number | undefined;
}

const ORIGIN_FILE = "origin.json";
const BASE_FOLDER = "base";
/** From runs/<run>/state/<version>-<epoch>. */
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

/** Keeps the origin of a pretrained model, and with adapters the model itself, for all tenures of the run. */
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

/** The model of a run file by the name that other programs find it by. */
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

/** Exports store what the run file asks for. */
function layoutFor({ dtype }: PretrainedModel, { layout }: CheckpointOrigin): CheckpointOrigin["layout"] {
  return dtype === "auto" ? layout : layoutOfType(layout, TYPES[dtype]);
}
