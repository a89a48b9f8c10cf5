/** Makes the training engine of a run. */

import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import type { RunConfig } from "@hone/config";
import { deriveSeed } from "@hone/core";
import { type ModelSpec, resolveModelSpec } from "@hone/nn";
import { loadTokenizer, type Tokenizer } from "@hone/tokenizer";
import type { RunFolders } from "./domain/run-folders.ts";
import type { RunRecord } from "./domain/run-record.ts";
import type { TrainingEngine } from "./domain/training-engine.ts";
import { OnnxTrainingEngine } from "./engine/onnx-training-engine.ts";

/** @param threads of the engine; 0 = every core. */
export async function createEngine(
  run: RunRecord,
  folders: RunFolders,
  threads: number,
): Promise<TrainingEngine> {
  const folder = folders.absolute(folders.tokenizer);
  const tokenizer = await loadTokenizer(folder);
  const companions: Record<string, string> = {};
  for (const name of await readdir(folder))
    companions[name] = await readFile(path.join(folder, name), "utf8");
  return new OnnxTrainingEngine({
    spec: modelSpecOf(run.config, tokenizer),
    seed: deriveSeed(run.config.seed, "weights"),
    companions,
    ...(threads === 0 ? {} : { threads }),
  });
}

/** The model that a run file describes, with the vocabulary of its tokenizer. */
export function modelSpecOf(config: RunConfig, tokenizer: Tokenizer): ModelSpec {
  const { init } = config.model;
  const padToken = tokenizer.specialTokens.pad_token;
  const padTokenId = padToken === undefined ? undefined : tokenizer.tokenId(padToken);
  return resolveModelSpec({
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
