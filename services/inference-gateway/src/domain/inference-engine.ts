/**
 * The port between the gateway and its engine: the embedded ONNX engine, or a vLLM or SGLang server beside the gateway.
 *
 * G1: ids and logprobs of a generation depend only on (weights, prompt ids, sampling, seed), and not on other requests that run
 *     at the same time, on the cache, or on how the context was built.
 * G2: every logprob is that of the distribution the token was drawn from, with its parameters applied.
 * G3: no token comes from a version outside the request's range, and each is labelled with the version it came from.
 * G4: `generate` settles by the request's deadline.
 */

import { type Generation, OnNewVersion, type Quantization } from "@hone/rl";
import type { ShapingValues } from "./engine-parameters.ts";

/** What tokens are drawn by: a run's sampling, and what else a client of the HTTP interface may ask for. */
export interface EngineSampling extends ShapingValues {
  /** Largest number of tokens. */
  readonly maxNewTokens: number;
  /** How many of the most likely tokens are returned with each sampled one. 0 to 20. @default 0 */
  readonly topLogprobs?: number;
  /** Sampling one of these ends the generation; it stays the last of the ids, since it was sampled. */
  readonly stopTokenIds: readonly number[];
}

/** The largest topLogprobs. */
export const MAX_TOP_LOGPROBS = 20;

/** A token with its log-probability under the sampling distribution. */
export interface TokenLogprob {
  readonly tokenId: number;
  readonly logprob: number;
}

/** Policy versions that may generate, both included. */
export interface VersionRange {
  readonly lowest: number;
  readonly highest: number;
}

/** Asks for a continuation of token ids. */
export interface GenerateRequest {
  /** Names the call, for {@link InferenceEngine.abort}; unique among the calls in flight. */
  readonly id: string;
  readonly model: string;
  /** The whole context, verbatim. At least one token. */
  readonly promptIds: readonly number[] | Int32Array;
  readonly sampling: EngineSampling;
  /** A non-negative safe integer. */
  readonly seed: number;
  /** Conversation whose cached K/V its next turn may use. A hint that never changes the answer. */
  readonly sessionId: string;
  /** Group of requests with the same prompt. A hint that never changes the answer. */
  readonly groupId: string;
  readonly versionRange: VersionRange;
  /**
   * The generation fails as stale once a version is loaded that is more than this many ahead of its first token, or above its
   * range. @default it may end on the versions that it began with
   */
  readonly maxStaleness?: number | undefined;
  /** What happens to the generation when a newer version of its range is loaded. @default recompute */
  readonly onNewVersion?: OnNewVersion;
  /** Milliseconds after the call within which it settles. */
  readonly deadlineMs: number;
}

/** Whether a version may generate for a request. */
export function isAllowed({ versionRange }: Pick<GenerateRequest, "versionRange">, version: number): boolean {
  return version >= versionRange.lowest && version <= versionRange.highest;
}

/** Whether a generation goes on with a version that is newer than its own. @param hasTokens whether it has sampled a token. */
export function goesOnWith(
  request: Pick<GenerateRequest, "versionRange" | "onNewVersion">,
  version: number,
  hasTokens: boolean,
): boolean {
  const endsOnItsOwn = request.onNewVersion === OnNewVersion.finish && hasTokens;
  return isAllowed(request, version) && !endsOnItsOwn;
}

/** Whether a generation is of no use once a version is loaded. @param first version of its first token; undefined = it has none. */
export function isOutdated(
  { versionRange, maxStaleness }: Pick<GenerateRequest, "versionRange" | "maxStaleness">,
  first: number | undefined,
  version: number,
): boolean {
  if (maxStaleness === undefined) return false;
  return version > Math.min(versionRange.highest, (first ?? version) + maxStaleness);
}

/** Counts and times of a generation. */
export interface GenerateMetrics {
  /** Prompt tokens whose K/V was computed for this call. */
  readonly prefillTokens: number;
  /** Prompt tokens whose K/V was in the cache. */
  readonly cachedTokens: number;
  /** Milliseconds from the call to its first step, then to the first token, and then to the end. */
  readonly queueMs: number;
  readonly prefillMs: number;
  readonly decodeMs: number;
}

export interface EngineGeneration extends Generation {
  /** The most likely tokens at each position in descending order, without impossible ones. N lists, or none if the request asks for none. */
  readonly topLogprobs?: readonly (readonly TokenLogprob[])[];
  readonly metrics: GenerateMetrics;
}

/** Tokens sampled since the last chunk of the same generation. */
export interface TokenChunk {
  readonly tokenIds: readonly number[];
  readonly logprobs: readonly number[];
  readonly topLogprobs?: readonly (readonly TokenLogprob[])[];
}

export interface GenerateOptions {
  /** Ends the generation; it then resolves with `aborted`. */
  readonly signal?: AbortSignal | undefined;
  /** Called with tokens while they are generated. The concatenated chunks equal the result. */
  readonly onTokens?: ((chunk: TokenChunk) => void) | undefined;
}

/** Weights to serve: a Hugging Face folder. */
export interface PolicySource {
  readonly model: string;
  readonly version: number;
  /** Absolute path of a folder with config.json and model.safetensors, or of a PEFT folder. */
  readonly folder: string;
  /** SHA-256 of model.safetensors, or of adapter_model.safetensors, hexadecimal. */
  readonly digest: string;
  /** Absolute folder of the model that adapters are merged into; absent = the folder that the adapters' own folder names. */
  readonly base?: string | undefined;
  /** @default none: as the engine computes by default */
  readonly quantization?: Quantization;
  /** `traceparent` of the span that published it, below which its load is recorded; absent = a trace of its own. */
  readonly publishedIn?: string | undefined;
}

/** A finished stage of the load of a policy. */
export interface LoadProgress {
  /** Its files were read and checked, its session was built, or it replaced the running version. */
  readonly stage: "read" | "built" | "swapped";
  /** Milliseconds that this took. */
  readonly tookMs: number;
  /** How it was done, if the engine had a choice. */
  readonly detail?: string;
}

export interface LoadPolicyOptions {
  readonly onProgress?: ((progress: LoadProgress) => void) | undefined;
}

export interface LoadedModel {
  readonly model: string;
  /** Versions that are loaded, ascending. New generations run on the last one. */
  readonly versions: readonly number[];
  readonly running: number;
  readonly waiting: number;
}

export interface EngineCapacity {
  /** Sequences that may run at once. */
  readonly maxSequences: number;
  /** Further requests that may wait. */
  readonly maxWaiting: number;
  readonly running: number;
  readonly waiting: number;
  readonly models: readonly LoadedModel[];
}

export interface InferenceEngine {
  /**
   * Continues a prompt.
   * @throws {InvalidRequestError} when the request breaks a rule; trying again cannot help.
   * @throws {EngineBusyError} when the queue is full.
   * @throws {VersionBehindError} when no loaded version is new enough yet; the caller decides how long to wait.
   * @throws {VersionStaleError} when all versions of the range have been replaced by newer ones.
   * @throws {EngineFailedError} when the engine failed or is closed.
   */
  generate(request: GenerateRequest, options?: GenerateOptions): Promise<EngineGeneration>;
  /**
   * Loads a version, on which new generations then run; until it is ready, they run on the former one. Running generations
   * move to it if their range allows, and else end on the former one, or fail where they have become too old.
   * @throws {PolicyLoadError} when the folder holds no model, or its digest differs; the former version stays loaded.
   */
  loadPolicy(source: PolicySource, options?: LoadPolicyOptions): Promise<void>;
  /** Drops a model; its generations end as aborted. Unknown models are no error. */
  unload(model: string): Promise<void>;
  /** Ends a generation, which resolves with `aborted`. Unknown ids are no error. */
  abort(id: string): void;
  capacity(): EngineCapacity;
  /** Ends every generation as aborted and frees all resources. A second call does nothing. */
  close(): Promise<void>;
}
