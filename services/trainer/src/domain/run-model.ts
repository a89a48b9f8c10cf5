/**
 * What a run's model is, from its run file and its folders.
 *
 *   runs/<run>/model/origin.json    of a pretrained model: the folder that its weights are read from, its config.json
 *                                   and how its files are laid out, which exports repeat
 */

import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import type { ModelInit, PretrainedModel, RunConfig } from "@hone/config";
import { type ModelSpec, resolveModelSpec, specFromConfig } from "@hone/nn";
import { type CheckpointOrigin, ElementType, layoutOfType } from "@hone/train";
import type { RunFolders } from "./run-folders.ts";

/** Where the weights of a pretrained model are, and what they are like. */
export interface PretrainedOrigin extends CheckpointOrigin {
  /** Absolute. */
  readonly folder: string;
}

export interface RunModel {
  readonly spec: ModelSpec;
  /** Absent for a model made from scratch. */
  readonly origin?: PretrainedOrigin;
}

/** What this needs to know of a tokenizer. */
export interface VocabularyOf {
  readonly vocabSize: number;
  readonly stopTokenIds: readonly number[];
  readonly specialTokens: Readonly<Record<string, string>>;
  tokenId(token: string): number | undefined;
}

const ORIGIN_FILE = "origin.json";
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
  return { spec: specFromConfig(origin.config), origin: { ...origin, layout: layoutFor(model, origin) } };
}

/** Keeps the origin of a pretrained model, for all tenures of the run. */
export async function writeOrigin(folders: RunFolders, origin: PretrainedOrigin): Promise<void> {
  await folders.writeWhole(folders.model, (folder) =>
    writeFile(path.join(folder, ORIGIN_FILE), `${JSON.stringify(origin)}\n`),
  );
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
