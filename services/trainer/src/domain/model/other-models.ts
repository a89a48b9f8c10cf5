/**
 * The models that a run reads beside its policy: those of its teachers, and the one that its critic begins with.
 *
 * They are found and checked when the run is admitted, and their places are written down for all later owners:
 *
 *   runs/<run>/models/<name>/origin.json    the folder of the weights, and their config.json
 */

import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { inspectModel } from "@hone/checkpoint";
import { otherModels, type RunConfig } from "@hone/config";
import { TerminalError } from "@hone/core";
import { type ModelConfig, type ModelSpec, specFromConfig } from "@hone/nn";
import { loadTokenizer, type Tokenizer } from "@hone/tokenizer";
import type { Problem } from "../report/run-event.ts";
import type { RunFolders } from "../state/run-folders.ts";
import { modelProblem } from "./model-problem.ts";
import type { FindModelOptions, ModelSource } from "./model-source.ts";

const ORIGIN_FILE = "origin.json";

/** A model that was found. */
export interface FoundModel {
  readonly spec: ModelSpec;
  /** Absolute path of its folder. */
  readonly folder: string;
}

export interface PreparedOthers {
  readonly problems: readonly Problem[];
  /** The shapes of the models that were found, by name. */
  readonly shapes: ReadonlyMap<string, ModelSpec>;
}

interface StoredOrigin {
  readonly folder: string;
  readonly config: ModelConfig;
}

/**
 * Finds all other models of a run whose policy is ready, and fetches those of the hub.
 * @throws failures that may pass. Calling it again is harmless.
 */
export async function prepareOtherModels(
  config: RunConfig,
  folders: RunFolders,
  models: ModelSource,
  options: Omit<FindModelOptions, "key">,
): Promise<PreparedOthers> {
  const problems: Problem[] = [];
  const shapes = new Map<string, ModelSpec>();
  const others = otherModels(config);
  if (others.length === 0) return { problems, shapes };
  const tokenizer = await loadTokenizer(folders.absolute(folders.tokenizer));
  for (const other of others) {
    try {
      const folder = await models.folderOf(other.place, { ...options, key: `${other.key}.path` });
      const { spec, origin } = await inspectModel(folder);
      const unfit = await unfitnessOf(folder, spec, tokenizer, config);
      if (unfit !== undefined) {
        problems.push(modelProblem(`${other.key}.path`, other.place.path, unfit));
        continue;
      }
      const stored: StoredOrigin = { folder, config: origin.config };
      await folders.writeWhole(folders.otherModel(other.name), (target) =>
        writeFile(path.join(target, ORIGIN_FILE), `${JSON.stringify(stored)}\n`),
      );
      shapes.set(other.name, spec);
    } catch (error) {
      if (!(error instanceof TerminalError)) throw error;
      const { path: place } = other.place;
      problems.push(modelProblem(`${other.key}.path`, place, "a language model that Hone can load", error));
    }
  }
  return { problems, shapes };
}

/** What would be allowed in the place of a model that cannot score or begin what this run needs; undefined = it can. */
async function unfitnessOf(
  folder: string,
  spec: ModelSpec,
  tokenizer: Tokenizer,
  { rollout }: RunConfig,
): Promise<string | undefined> {
  const { maxContextTokens } = rollout;
  if (spec.head !== "language") return "a language model, and this one classifies tokens";
  if (spec.maxPositions < maxContextTokens) {
    return `a model of at least rollout.maxContextTokens (${maxContextTokens}) positions, and this one has ${spec.maxPositions}`;
  }
  const difference = differenceOf(tokenizer, await loadTokenizer(folder), spec);
  return difference && `a model with the policy's tokenizer, and ${difference}`;
}

/** The other model of a run that was admitted. @param name as `otherModels` gives it. */
export async function loadOtherModel(folders: RunFolders, name: string): Promise<FoundModel> {
  const text = await readFile(path.join(folders.absolute(folders.otherModel(name)), ORIGIN_FILE), "utf8");
  const { folder, config } = JSON.parse(text) as StoredOrigin;
  return { folder, spec: specFromConfig(config) };
}

/** In what the tokens of a model differ from the policy's; it may have more of them. */
function differenceOf(policy: Tokenizer, other: Tokenizer, { vocabSize }: ModelSpec): string | undefined {
  if (vocabSize < policy.vocabSize) {
    return `this one scores ${vocabSize} tokens of the policy's ${policy.vocabSize}`;
  }
  for (let id = 0; id < policy.vocabSize; id++) {
    const [ours, theirs] = [policy.tokenOf(id), other.tokenOf(id)];
    if (ours !== undefined && ours !== theirs) {
      return `its token ${id} is ${JSON.stringify(theirs)} where the policy's is ${JSON.stringify(ours)}`;
    }
  }
  return undefined;
}
