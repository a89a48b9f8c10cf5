/**
 * The models that clients may name: the policies of active runs by the id of the run, and the checkpoints that the operator
 * names. A tokenizer is read at the first request for its model, as most runs never get one.
 */

import { inspectMerged } from "@hone/checkpoint";
import type { ModelSpec } from "@hone/nn";
import { ChatRenderer, makeTokenizer, type Tokenizer } from "@hone/tokenizer";
import { ModelLoadingError, UnknownModelError } from "../errors.ts";
import type { PolicySource } from "../inference-engine.ts";
import type { LoadedPolicy, PolicyKeeper } from "../policy-keeper.ts";
import { readSamplingDefaults, type SamplingDefaults } from "./sampling-defaults.ts";
import type { ServedCheckpoints } from "./served-checkpoints.ts";

/** How text becomes tokens and back for a model, and its defaults. */
export interface ModelLanguage {
  readonly tokenizer: Tokenizer;
  /** Undefined = the model has no chat template. */
  readonly renderer: ChatRenderer | undefined;
  readonly stopTokenIds: readonly number[];
  /** Values for what a request does not give. */
  readonly defaults: SamplingDefaults;
  /** Longest prompt and answer together. */
  readonly maxContextTokens: number;
}

export interface ServedModel {
  /** The name that clients use. */
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
  /** Longest prompt and answer together of a model that the engine allows. */
  readonly contextTokens: (spec: ModelSpec) => number;
}

export class ServedModels {
  readonly #options: ServedModelsOptions;
  /** By the engine's name; all versions of a run have the same tokenizer. */
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

  /** @throws the errors of {@link find}, and those of a tokenizer that cannot be read. */
  async open(id: string): Promise<ServedModel> {
    const { source } = this.#find(id);
    this.#forgetDropped();
    let language = this.#languages.get(source.model);
    if (language === undefined) {
      language = readLanguage(source, this.#options.contextTokens);
      this.#languages.set(source.model, language);
      // A newer version may just have replaced the folder; the next request reads that one.
      language.catch(() => this.#languages.delete(source.model));
    }
    return { id, engineModel: source.model, version: source.version, language: await language };
  }

  #find(id: string): LoadedPolicy {
    const { keeper, checkpoints } = this.#options;
    const model = checkpoints.engineModelOf(id) ?? id;
    const loaded = keeper.loaded().find(({ source }) => source.model === model);
    // A checkpoint may be named by its id only, not by the engine's name.
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
