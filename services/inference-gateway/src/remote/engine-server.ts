/**
 * The port between {@link ServerEngine} and one inference server: what the rules of the InferenceEngine need of vLLM or
 * SGLang, whatever their releases call it.
 */

import type { ModelSpec } from "@hone/nn";
import type { SamplingParameters, TokenLogprob } from "../domain/inference-engine.ts";

/** Of which distribution a server tells logprobs. Found out by asking it, see probe-scoring.ts. */
export const Scoring = {
  /** Of the one that tokens are drawn from, with all parameters. */
  processed: "processed",
  /** Of the one after penalties and temperature, before top-p, top-k and min-p. */
  tempered: "tempered",
  /** Of the model's own, before every parameter. */
  raw: "raw",
} as const;
export type Scoring = (typeof Scoring)[keyof typeof Scoring];

/** Sampling parameters that a server takes, where these are fewer than the port's. */
export interface SamplingBounds {
  /** Lower ones that are not 0 are raised to it silently, so they are refused. */
  readonly minTemperature: number;
  readonly maxTemperature: number;
  readonly maxRepetitionPenalty: number;
}

/** What a running server is. */
export interface ServerFacts {
  /** For people, such as `vLLM 0.32.0`. */
  readonly name: string;
  /** Longest prompt and answer together, in tokens. */
  readonly maxContextTokens: number;
  readonly scoring: Scoring;
  /** Whether adapters can be loaded while it runs. */
  readonly takesAdapters: boolean;
  /** Whether it says that its whole weights are those that it was started with: a gateway before may have replaced them. */
  readonly hasStartWeights: boolean;
  /** What it was started with: a folder or an id of the hub. */
  readonly startModel: string;
  /** Shape of that model, where the folder can be read here. */
  readonly startSpec: ModelSpec | undefined;
}

/** Weights as a server knows them. */
export interface ServerWeights {
  readonly kind: "whole" | "adapter";
  /** Names them, one for each version. */
  readonly label: string;
  /** Absolute, as the server sees it. */
  readonly folder: string;
}

/** Continues token ids. */
export interface ServerCall {
  readonly promptIds: readonly number[];
  readonly sampling: SamplingParameters;
  /** Most tokens of this call; at least 1. */
  readonly maxNewTokens: number;
  readonly seed: number;
  readonly weights: ServerWeights;
  /** Wants chunks as they are made; without it there may be one. */
  readonly isStreaming: boolean;
}

/** Tokens of a call since its last chunk. */
export interface ServerChunk {
  readonly ids: readonly number[];
  readonly logprobs: readonly number[];
  /** At each place, where they were asked for; in any order, maybe one more. Those that cannot be drawn are left out. */
  readonly topLogprobs?: readonly (readonly TokenLogprob[])[];
  /** On the last chunk: a stop token, the most tokens or the context, or an end that somebody asked for. */
  readonly end?: "stop" | "length" | "abort";
  /** Labels of the weights of all tokens of the call so far, in order, where the release tells them. */
  readonly labels?: readonly LabelSpan[];
  /** Prompt tokens whose K/V was there already, where the release tells. */
  readonly cachedTokens?: number;
}

export interface LabelSpan {
  readonly label: string;
  readonly tokenCount: number;
}

/** What a server says of its weights before anybody gave it others. */
export const START_LABEL = "default";
/** Begins what a server is told when it has an adapter beside them. */
export const ADAPTER_MARK = "adapter.";

export interface EngineServer {
  /** For people: `vllm at http://127.0.0.1:8000`. */
  readonly name: string;
  readonly bounds: SamplingBounds;
  /**
   * Finds out what the server is.
   * @throws {ServerGoneError} while it starts.
   * @throws {ServerUnfitError} when it was started without something that is needed.
   */
  inspect(signal: AbortSignal): Promise<ServerFacts>;
  /**
   * Whether it works, and what tells it from another process with other weights.
   * @returns equal texts as long as it is the same process with the weights of the last {@link load}.
   * @throws {ServerGoneError}
   */
  identify(signal: AbortSignal): Promise<string>;
  /**
   * Continues a prompt. When the signal aborts it yields what it has and ends, within half a second.
   * @throws {ServerGoneError} when the server goes away, or breaks off.
   * @throws {ServerRefusedError} when it refuses the call.
   */
  generate(call: ServerCall, signal: AbortSignal): AsyncIterable<ServerChunk>;
  /**
   * Puts weights in the place of those before and forgets the K/V of those. Only called while nothing generates.
   * @throws {ServerGoneError | ServerRefusedError} after which whole weights may be there in part.
   */
  load(weights: ServerWeights, signal: AbortSignal): Promise<void>;
  /** Forgets adapters that are needed no more; whole weights stay until others come. */
  drop(weights: ServerWeights, signal: AbortSignal): Promise<void>;
  /** Closes its connections. */
  close(): void;
}
