/**
 * Makes the model of a run ready when the run is admitted: a pretrained one is found (and fetched), its configuration,
 * files and tokenizer are checked, and what later owners of the run need is written to the run's folders.
 */

import { writeFile } from "node:fs/promises";
import path from "node:path";
import { type BaseReference, findBaseFolder, inspectMerged } from "@hone/checkpoint";
import type { PretrainedModel, RunConfig } from "@hone/config";
import { TerminalError } from "@hone/core";
import { configFromSpec, type ModelConfig, type ModelSpec, ModelSpecError } from "@hone/nn";
import { ChatRenderer, loadTokenizer, type Tokenizer, TokenizerLoadError } from "@hone/tokenizer";
import type { Problem } from "../report/run-event.ts";
import type { RunFolders } from "../state/run-folders.ts";
import { modelProblem } from "./model-problem.ts";
import type { FindModelOptions, ModelSource } from "./model-source.ts";
import { prepareOtherModels } from "./other-models.ts";
import { referenceOf, specOfInit, writeOrigin } from "./run-model.ts";

export type PrepareOptions = Omit<FindModelOptions, "key">;

/** What a run's models are like. */
export interface ReadyModels {
  /** The policy's config.json. */
  readonly config: ModelConfig;
  /** The shapes of the run's other models, by their names in `otherModels`. */
  readonly others: ReadonlyMap<string, ModelSpec>;
}

interface Refused {
  readonly kind: "refused";
  readonly problems: readonly Problem[];
}

export type PreparedModel = ({ readonly kind: "ready" } & ReadyModels) | Refused;
type PreparedPolicy = ({ readonly kind: "ready" } & Pick<ReadyModels, "config">) | Refused;

/**
 * Makes the policy's model ready, and those that the run reads beside it.
 * @throws failures that may pass, such as a hub that cannot be reached or a full disk. Calling it again is harmless.
 */
export async function prepareModel(
  config: RunConfig,
  folders: RunFolders,
  models: ModelSource,
  options: PrepareOptions,
): Promise<PreparedModel> {
  const prepared = await preparePolicy(config, folders, models, { ...options, key: "model.path" });
  if (prepared.kind === "refused") return prepared;
  const { problems, shapes } = await prepareOtherModels(config, folders, models, options);
  return problems.length === 0 ? { ...prepared, others: shapes } : { kind: "refused", problems };
}

async function preparePolicy(
  { model }: RunConfig,
  folders: RunFolders,
  models: ModelSource,
  options: FindModelOptions,
): Promise<PreparedPolicy> {
  if ("path" in model) return preparePretrained(model, folders, models, options);
  const { tokenizer: files } = model.init;
  if (typeof files === "string") throw new TypeError("the tokenizer of an admitted run is inlined");
  try {
    const tokenizer = await writeTokenizer(files.files, folders);
    return { kind: "ready", config: configFromSpec(specOfInit(model.init, tokenizer)) };
  } catch (error) {
    if (error instanceof TokenizerLoadError) {
      const allowed = "a tokenizer.json that Hone can run, with the files beside it";
      return refused("model.init.tokenizer", Object.keys(files.files), allowed, error);
    }
    // The other services report what is wrong with the shape.
    if (error instanceof ModelSpecError)
      return refused("model.init", model.init, "a model that Hone builds", error);
    throw error;
  }
}

async function preparePretrained(
  model: PretrainedModel,
  folders: RunFolders,
  models: ModelSource,
  options: FindModelOptions,
): Promise<PreparedPolicy> {
  try {
    const folder = await models.folderOf(model, options);
    const findBase = ({ place, revision = "main" }: BaseReference) =>
      models.folderOf({ path: place, revision }, options);
    const base = await findBaseFolder(folder, findBase);
    if (base !== undefined && model.lora !== undefined) {
      return refused("model.lora", model.lora, "left out where model.path holds adapters already");
    }
    const { spec, origin, companions } = await inspectMerged(
      folder,
      base === undefined ? findBase : async () => base,
    );
    if (spec.head !== "language") {
      return refused(
        "model.path",
        model.path,
        "a language model, and this one classifies tokens, as a critic does",
      );
    }
    const tokenizer = await writeTokenizer(companions, folders);
    const hasEnd = new ChatRenderer(tokenizer).tokenizer.stopTokenIds.length > 0;
    if (!hasEnd) return refused("model.path", model.path, "a model whose tokenizer names an eos_token");
    const known = { folder, reference: referenceOf(model), ...(base === undefined ? {} : { base }) };
    await writeOrigin(folders, { ...known, ...origin }, model);
    return { kind: "ready", config: origin.config };
  } catch (error) {
    if (!(error instanceof TerminalError)) throw error;
    return refused("model.path", model.path, "a chat model that Hone can load", error);
  }
}

async function writeTokenizer(
  files: Readonly<Record<string, string | Uint8Array>>,
  folders: RunFolders,
): Promise<Tokenizer> {
  return folders.writeWhole(folders.tokenizer, async (folder) => {
    for (const [name, content] of Object.entries(files)) {
      await writeFile(path.join(folder, path.basename(name)), content);
    }
    return loadTokenizer(folder);
  });
}

function refused(key: string, value: unknown, allowed: string, error?: Error): Refused {
  return { kind: "refused", problems: [modelProblem(key, value, allowed, error)] };
}
