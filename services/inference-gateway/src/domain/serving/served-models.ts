/**
 * What clients may name as a model: the policies of active runs by their run's id, and the checkpoints that the operator
 * asked for by their names. Its tokenizer is read when a model is first asked for: most runs are never talked to.
 */

import { inspectMerged } from "@hone/checkpoint";
import type { ModelSpec } from "@hone/nn";
import { ChatRenderer, makeTokenizer, type Tokenizer } from "@hone/tokenizer";
import { ModelLoadingError, UnknownModelError } from "../errors.ts";
import type { PolicySource } from "../inference-engine.ts";
import type { LoadedPolicy, PolicyKeeper } from "../policy-keeper.ts";
import { readSamplingDefaults, type SamplingDefaults } from "./sampling-defaults.ts";
import type { ServedCheckpoints } from "./served-checkpoints.ts";

/** What turns text into tokens and back for a model. */
export interface ModelLanguage {
  readonly tokenizer: Tokenizer;
  /** Absent = the model has no chat format. */
  readonly renderer: ChatRenderer | undefined;
  readonly stopTokenIds: readonly number[];
  /** Where a request says nothing. */
  readonly defaults: SamplingDefaults;
  /** Longest prompt and answer together. */
  readonly maxContextTokens: number;
}

export interface ServedModel {
  /** As clients name it. */
  readonly id: string;
  readonly engineModel: string;
  readonly version: number;
  readonly language: ModelLanguage;
}

export interface ListedModel {
  readonly id: string;
  readonly version: number;
  /** Unix milliseconds. */
  readonly loadedAtMs: number;
}

export interface ServedModelsOptions {
  readonly keeper: PolicyKeeper;
  readonly checkpoints: ServedCheckpoints;
  /** Longest prompt and answer together that the engine takes of a model. */
  readonly contextTokens: (spec: ModelSpec) => number;
}

export class ServedModels {
  readonly #options: ServedModelsOptions;
  /** By the engine's name; a run keeps its tokenizer through all its versions. */
  readonly #languages = new Map<string, Promise<ModelLanguage>>();

  constructor(options: ServedModelsOptions) {
    this.#options = options;
  }

  list(): ListedModel[] {
    const { keeper, checkpoints } = this.#options;
    return keeper.loaded().map(({ source, loadedAtMs }) => ({
      id: checkpoints.idOf(source.model) ?? source.model,
      version: source.version,
      loadedAtMs,
    }));
  }

  /** @throws {UnknownModelError | ModelLoadingError | ModelFailedError} unless it is loaded. */
  find(id: string): ListedModel {
    const { source, loadedAtMs } = this.#find(id);
    return { id, version: source.version, loadedAtMs };
  }

  /** @throws as {@link find} does, and what a tokenizer that cannot be read throws. */
  async open(id: string): Promise<ServedModel> {
    const { source } = this.#find(id);
    this.#forgetDropped();
    let language = this.#languages.get(source.model);
    if (language === undefined) {
      language = readLanguage(source, this.#options.contextTokens);
      this.#languages.set(source.model, language);
      // The folder may just have made room for a newer version: the next request reads that one.
      language.catch(() => this.#languages.delete(source.model));
    }
    return { id, engineModel: source.model, version: source.version, language: await language };
  }

  #find(id: string): LoadedPolicy {
    const { keeper, checkpoints } = this.#options;
    const model = checkpoints.engineModelOf(id) ?? id;
    const loaded = keeper.loaded().find(({ source }) => source.model === model);
    // Checkpoints are known by their own names only.
    if (loaded !== undefined && (checkpoints.idOf(model) ?? model) === id) return loaded;
    checkpoints.checkUsable(id);
    if (keeper.loading(id) !== undefined) throw new ModelLoadingError(id, "loading");
    throw new UnknownModelError(
      id,
      this.list().map((model) => model.id),
    );
  }

  #forgetDropped(): void {
    const loaded = new Set(this.#options.keeper.loaded().map(({ source }) => source.model));
    for (const model of this.#languages.keys()) if (!loaded.has(model)) this.#languages.delete(model);
  }
}

async function readLanguage(
  { folder, base }: PolicySource,
  contextTokens: ServedModelsOptions["contextTokens"],
): Promise<ModelLanguage> {
  const findBase = base === undefined ? undefined : async () => base;
  const { spec, companions } = await inspectMerged(folder, findBase);
  const texts = Object.entries(companions).map(([name, content]) => [
    name,
    typeof content === "string" ? content : Buffer.from(content).toString("utf8"),
  ]);
  const files = Object.fromEntries(texts) as Record<string, string>;
  const tokenizer = makeTokenizer(files, folder);
  return {
    tokenizer,
    renderer: tokenizer.chatTemplate === undefined ? undefined : new ChatRenderer(tokenizer),
    stopTokenIds: [...new Set([...tokenizer.stopTokenIds, ...spec.eosTokenIds])],
    defaults: readSamplingDefaults(files["generation_config.json"]),
    maxContextTokens: contextTokens(spec),
  };
}
