/**
 * The port between the gateway and its engine: the embedded ONNX engine, or a vLLM or SGLang server beside the gateway.
 *
 * G1: ids and logprobs of a generation depend only on (weights, prompt ids, sampling, seed), and not on other requests that run
 *     at the same time, on the cache, or on how the context was built.
 * G2: every logprob is that of the distribution the token was drawn from, with its parameters applied.
 * G3: no token comes from a version outside the request's range, and each is labelled with the version it came from.
 * G4: `generate` settles by the request's deadline.
 */

/** Parameters of the sampling distribution, all explicit. */
export interface SamplingParameters {
  /** 0 chooses the most likely token; otherwise logits are divided by it. In [0, 100]. */
  readonly temperature: number;
  /** Smallest set of tokens whose probability reaches this; 1 = all. In (0, 1]. */
  readonly topP: number;
  /** Most likely tokens considered; 0 = all. */
  readonly topK: number;
  /** Least probability of a token, as a share of the most likely one's. In [0, 1]. @default 0, all */
  readonly minP?: number;
  /** Logits of tokens in the context are divided by it, or multiplied where negative. Above 0. @default 1 */
  readonly repetitionPenalty?: number;
  /** Subtracted from the logits of tokens that were sampled. In [-2, 2]. @default 0 */
  readonly presencePenalty?: number;
  /** Subtracted from the logit of a token as often as it was sampled. In [-2, 2]. @default 0 */
  readonly frequencyPenalty?: number;
  /** How many of the most likely tokens are returned with each sampled one. 0 to 20. @default 0 */
  readonly topLogprobs?: number;
  /** Most tokens sampled. At least 1. */
  readonly maxNewTokens: number;
  /** Sampling one of these ends the generation; it stays the last of the ids, since it was sampled. */
  readonly stopTokenIds: readonly number[];
}

/** The largest topLogprobs. */
export const MAX_TOP_LOGPROBS = 20;

/** A token with its log-probability under the sampling distribution. */
export interface TokenLogprob {
  readonly id: number;
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
  readonly sampling: SamplingParameters;
  /** A non-negative safe integer. */
  readonly seed: number;
  /** Conversation whose cached K/V its next turn may use. A hint that never changes the answer. */
  readonly sessionId: string;
  /** Group of requests with the same prompt. A hint that never changes the answer. */
  readonly groupId: string;
  readonly versionRange: VersionRange;
  /** Milliseconds after the call within which it settles. */
  readonly deadlineMs: number;
}

/** How a generation ended. */
export const FinishReason = {
  /** A stop token was sampled; it is the last of the ids. */
  stop: "stop",
  /** `maxNewTokens` or the model's context is used up. */
  length: "length",
  /** The caller aborted the generation; the ids are those sampled until then. */
  aborted: "aborted",
  /** The deadline passed; the ids are those sampled until then. */
  deadline: "deadline",
} as const;
export type FinishReason = (typeof FinishReason)[keyof typeof FinishReason];

/** Consecutive tokens of one policy version. */
export interface VersionSpan {
  readonly version: number;
  readonly tokenCount: number;
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

export interface GenerateResult {
  /** Every sampled token in order. N of them. */
  readonly ids: readonly number[];
  /** Log-probability of each under the sampling distribution, rounded to float32 as in messages. N of them. */
  readonly logprobs: readonly number[];
  /** The most likely tokens at each position in descending order, without impossible ones. N lists, or none if the request asks for none. */
  readonly topLogprobs?: readonly (readonly TokenLogprob[])[];
  readonly finishReason: FinishReason;
  /** In order; the counts sum to N. */
  readonly versions: readonly VersionSpan[];
  readonly metrics: GenerateMetrics;
}

/** Tokens sampled since the last chunk of the same generation. */
export interface TokenChunk {
  readonly ids: readonly number[];
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
  generate(request: GenerateRequest, options?: GenerateOptions): Promise<GenerateResult>;
  /**
   * Loads a version, on which new generations then run; until it is ready, they run on the former one. Running generations
   * move to it if their range allows, and else end on the former one.
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
