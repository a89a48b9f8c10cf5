/**
 * The port between {@link ServerEngine} and one inference server. It has what the rules of InferenceEngine need of vLLM or
 * SGLang, in any of their releases.
 */

import type { ModelSpec } from "@hone/nn";
import type { EngineSampling, TokenLogprob } from "../domain/inference-engine.ts";

/** The distribution of a server's logprobs, which probe-scoring.ts finds out by requests. */
export const Scoring = {
  /** The distribution that tokens are drawn from, with all parameters. */
  processed: "processed",
  /** The distribution after penalties and temperature, before top-p, top-k and min-p. */
  tempered: "tempered",
  /** The distribution of the model, before all parameters. */
  raw: "raw",
} as const;
export type Scoring = (typeof Scoring)[keyof typeof Scoring];

/** The range of sampling parameters that a server takes, where it is smaller than the port's. */
export interface SamplingBounds {
  /** The server silently raises lower temperatures above 0 to this one, so they are refused. */
  readonly minTemperature: number;
  readonly maxTemperature: number;
  readonly maxRepetitionPenalty: number;
}

/** Facts about a running server. */
export interface ServerFacts {
  /** For people, such as `vLLM 0.32.0`. */
  readonly name: string;
  /** Longest prompt and answer together, in tokens. */
  readonly maxContextTokens: number;
  readonly scoring: Scoring;
  /** Whether adapters can be loaded while it runs. */
  readonly takesAdapters: boolean;
  /** Whether it says that it has the whole weights that it was started with. An earlier gateway may have replaced them. */
  readonly hasStartWeights: boolean;
  /** The model that it was started with: a folder or an id of the hub. */
  readonly startModel: string;
  /** Spec of that model, if its folder can be read here. */
  readonly startSpec: ModelSpec | undefined;
}

/** Weights for a server. */
export interface ServerWeights {
  readonly kind: "whole" | "adapter";
  /** Name of the weights, a different one for each version. */
  readonly label: string;
  /** Absolute path at the server. */
  readonly folder: string;
}

/** Continues token ids. */
export interface ServerCall {
  readonly promptIds: readonly number[];
  readonly sampling: EngineSampling;
  /** Most tokens of this call; at least 1. */
  readonly maxNewTokens: number;
  readonly seed: number;
  readonly weights: ServerWeights;
  /** Whether to send chunks during the generation; otherwise there may be only one. */
  readonly isStreaming: boolean;
}

/** The tokens of a call since its last chunk. */
export interface ServerChunk {
  readonly tokenIds: readonly number[];
  readonly logprobs: readonly number[];
  /** The most likely tokens at each position, if the call asks for them; in any order, perhaps one more, without impossible tokens. */
  readonly topLogprobs?: readonly (readonly TokenLogprob[])[];
  /** Why the generation ended, in the last chunk: a stop token, the limit of tokens or of the context, or an abort. */
  readonly end?: "stop" | "length" | "abort";
  /** Labels of the weights of all tokens of the call so far, in order, if the release gives them. */
  readonly labels?: readonly LabelSpan[];
  /** Number of prompt tokens whose K/V was in the cache, if the release gives it. */
  readonly cachedTokens?: number;
}

export interface LabelSpan {
  readonly label: string;
  readonly tokenCount: number;
}

/** A server's label for the weights that it was started with. */
export const START_LABEL = "default";
/** First part of the label that a server gets when it has the weights of its start and an adapter. */
export const ADAPTER_MARK = "adapter.";

export interface EngineServer {
  /** Name for people, such as `vLLM at http://127.0.0.1:8000`. */
  readonly name: string;
  readonly bounds: SamplingBounds;
  /**
   * Reads the facts about the server.
   * @throws {ServerGoneError} while it starts.
   * @throws {ServerUnfitError} when it was started without something that Hone needs.
   */
  inspect(signal: AbortSignal): Promise<ServerFacts>;
  /**
   * Checks that the server works, and identifies its process and its weights.
   * @returns the same text as long as it is the same process with the weights of the last {@link load}.
   * @throws {ServerGoneError}
   */
  identify(signal: AbortSignal): Promise<string>;
  /**
   * Continues a prompt. When the signal aborts, it yields the tokens so far and ends within half a second.
   * @throws {ServerGoneError} when the server goes away or breaks the answer off.
   * @throws {ServerRefusedError} when it refuses the call.
   */
  generate(call: ServerCall, signal: AbortSignal): AsyncIterable<ServerChunk>;
  /**
   * Replaces the weights and clears the K/V of the former ones. Only called while nothing generates.
   * @throws {ServerGoneError | ServerRefusedError} after which the server may have a part of the new whole weights.
   */
  load(weights: ServerWeights, signal: AbortSignal): Promise<void>;
  /** Removes adapters that are no longer needed; whole weights stay until others replace them. */
  drop(weights: ServerWeights, signal: AbortSignal): Promise<void>;
  /** Closes its connections. */
  close(): void;
}
