/**
 * The port between the gateway and whatever generates: the embedded ONNX engine, or a vLLM or SGLang server beside it.
 *
 * G1: ids and logprobs of a generation are functions of (weights, prompt ids, sampling, seed) alone: never of the
 *     requests that run beside it, of what was cached, or of how the context came together.
 * G2: every logprob is that of the distribution the token was drawn from, with its parameters applied.
 * G3: no token comes from a version outside the request's range, and each is labelled with the version it came from.
 * G4: `generate` settles by the request's deadline.
 */

/** Parameters of the sampling distribution, all explicit. */
export interface SamplingParameters {
  /** 0 takes the most likely token; otherwise logits are divided by it. In [0, 100]. */
  readonly temperature: number;
  /** Smallest set of tokens whose probability reaches this; 1 = all. In (0, 1]. */
  readonly topP: number;
  /** Most likely tokens considered; 0 = all. */
  readonly topK: number;
  /** Least probability of a token, as a share of the most likely one's. In [0, 1]. @default 0, all */
  readonly minP?: number;
  /** Logits of tokens in the context are divided by it, or multiplied where negative. Above 0. @default 1 */
  readonly repetitionPenalty?: number;
  /** Taken from the logits of tokens that were sampled. In [-2, 2]. @default 0 */
  readonly presencePenalty?: number;
  /** Taken from them once for each time. In [-2, 2]. @default 0 */
  readonly frequencyPenalty?: number;
  /** How many of the most likely tokens are told beside each sampled one. 0 to 20. @default 0 */
  readonly topLogprobs?: number;
  /** Most tokens sampled. At least 1. */
  readonly maxNewTokens: number;
  /** Sampling one of these ends the generation; it stays the last of the ids, since it was sampled. */
  readonly stopTokenIds: readonly number[];
}

/** Most of them that a request may ask for. */
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
  /** Conversation whose K/V may serve its next turn. A hint: it never changes the answer. */
  readonly sessionId: string;
  /** Group that shares a prompt. A hint: it never changes the answer. */
  readonly groupId: string;
  readonly versionRange: VersionRange;
  /** Milliseconds from the call within which it settles. */
  readonly deadlineMs: number;
}

/** How a generation ended. */
export const FinishReason = {
  /** A stop token was sampled; it is the last of the ids. */
  stop: "stop",
  /** `maxNewTokens` or the model's context is used up. */
  length: "length",
  /** The caller asked for its end; the ids are those made until then. */
  aborted: "aborted",
  /** Its deadline passed; the ids are those made until then. */
  deadline: "deadline",
} as const;
export type FinishReason = (typeof FinishReason)[keyof typeof FinishReason];

/** Consecutive tokens of one policy version. */
export interface VersionSpan {
  readonly version: number;
  readonly tokenCount: number;
}

/** What a generation cost. */
export interface GenerateMetrics {
  /** Prompt tokens whose K/V was computed for this call. */
  readonly prefillTokens: number;
  /** Prompt tokens whose K/V was there already. */
  readonly cachedTokens: number;
  /** Milliseconds from the call to its first step, from there to the first token, from there to the end. */
  readonly queueMs: number;
  readonly prefillMs: number;
  readonly decodeMs: number;
}

export interface GenerateResult {
  /** Every sampled token in order. N of them. */
  readonly ids: readonly number[];
  /** Log-probability of each under the sampling distribution, rounded to float32 as it travels. N of them. */
  readonly logprobs: readonly number[];
  /** The most likely tokens at each place, the likeliest first; those that could not be drawn are left out. N of them, or none when none were asked for. */
  readonly topLogprobs?: readonly (readonly TokenLogprob[])[];
  readonly finishReason: FinishReason;
  /** In order; the counts sum to N. */
  readonly versions: readonly VersionSpan[];
  readonly metrics: GenerateMetrics;
}

/** Tokens made since the last report of the same generation. */
export interface TokenChunk {
  readonly ids: readonly number[];
  readonly logprobs: readonly number[];
  readonly topLogprobs?: readonly (readonly TokenLogprob[])[];
}

export interface GenerateOptions {
  /** Ends the generation; it then resolves with `aborted`. */
  readonly signal?: AbortSignal | undefined;
  /** Wants tokens as they are made. The concatenated chunks equal the result. */
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
  /** Absolute folder of the model that adapters are merged into; absent where their own folder says where it is. */
  readonly base?: string | undefined;
}

/** What the load of a policy has come to. */
export interface LoadProgress {
  /** What was done: its files read and checked, its session built, or the running one replaced. */
  readonly stage: "read" | "built" | "swapped";
  /** Milliseconds that this took. */
  readonly tookMs: number;
  /** How it was done, where the engine had a choice. */
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
  /** Requests that may wait beside them. */
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
   * @throws {VersionStaleError} when the versions asked for are gone for good.
   * @throws {EngineFailedError} when the engine broke or is closed.
   */
  generate(request: GenerateRequest, options?: GenerateOptions): Promise<GenerateResult>;
  /**
   * Makes a version the one that new generations run on, beside the running one until it is ready. Running
   * generations move to it where their range allows, and end on the old one where it does not.
   * @throws {PolicyLoadError} when the folder is no model, or its digest differs; what was loaded stays.
   */
  loadPolicy(source: PolicySource, options?: LoadPolicyOptions): Promise<void>;
  /** Drops a model; its generations end as aborted. Unknown models are no error. */
  unload(model: string): Promise<void>;
  /** Ends a generation, which resolves with `aborted`. Unknown ids are no error. */
  abort(id: string): void;
  capacity(): EngineCapacity;
  /** Ends every generation as aborted and gives everything back. Calling it twice does nothing. */
  close(): Promise<void>;
}
