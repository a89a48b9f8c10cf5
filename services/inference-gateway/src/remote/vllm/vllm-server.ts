/**
 * A vLLM server (0.18 and newer) as an {@link EngineServer}: its OpenAI-compatible completions by token ids, and the
 * endpoints for reinforcement learning.
 *
 * V1: every sampling parameter is sent, as the model's generation_config.json would set the others.
 * V2: the server is paused while its weights change; requests that it still runs are ended, and its K/V is cleared.
 * V3: the cache salt contains the version, so that no K/V of another version is used, even if a release keeps it.
 *
 * Differences between releases are detected at the start, by their routes and fields.
 */

import { DeadlineError } from "@hone/core";
import { shapingRequest } from "../../domain/engine-parameters.ts";
import { ServerBusyError, ServerUnfitError } from "../../domain/errors.ts";
import {
  ADAPTER_MARK,
  type EngineServer,
  type SamplingBounds,
  type ServerCall,
  type ServerChunk,
  type ServerFacts,
  type ServerWeights,
  START_LABEL,
} from "../engine-server.ts";
import { AnswerReader } from "../http/fields.ts";
import { HttpClient } from "../http/http-client.ts";
import { probeScoring } from "../probe-scoring.ts";
import { readStartSpec } from "../read-start-spec.ts";
import { readCompletionChunk } from "./vllm-chunk.ts";

export interface VllmServerOptions {
  readonly url: string;
  readonly apiKey?: string | undefined;
  /** Longest change of weights. @default 900_000 */
  readonly loadDeadlineMs?: number;
  /** Longest time without an answer to identify(). @default 10_000 */
  readonly identifyDeadlineMs?: number;
}

const DEFAULT_LOAD_DEADLINE_MS = 900_000;
/** A server that does not answer for this long counts as dead, and an engine as in a long step. */
const DEFAULT_IDENTIFY_DEADLINE_MS = 10_000;
/** Tokens in a chunk for callers that do not stream; releases without this field send a chunk for each token. */
const CHUNK_TOKENS = 8;
const PAUSE = "/pause?mode=abort&clear_cache=true";
const LOAD_ADAPTER = "/v1/load_lora_adapter";

export class VllmServer implements EngineServer {
  readonly name: string;
  // sampling_params.py: lower temperatures than _MAX_TEMP are raised to it, higher ones than 2 refused.
  readonly bounds: SamplingBounds = { minTemperature: 0.01, maxTemperature: 2, maxRepetitionPenalty: 100 };
  readonly #http: HttpClient;
  readonly #loadDeadlineMs: number;
  readonly #identifyDeadlineMs: number;
  /** The name in `/v1/models` of the model that the server was started with. */
  #model = "";
  /** Whether the release keeps a label of its weights. */
  #keepsLabel = false;

  constructor({
    url,
    apiKey,
    loadDeadlineMs = DEFAULT_LOAD_DEADLINE_MS,
    identifyDeadlineMs = DEFAULT_IDENTIFY_DEADLINE_MS,
  }: VllmServerOptions) {
    this.name = `vLLM at ${url}`;
    this.#http = new HttpClient({ name: this.name, url, apiKey });
    this.#loadDeadlineMs = loadDeadlineMs;
    this.#identifyDeadlineMs = identifyDeadlineMs;
  }

  async inspect(signal: AbortSignal): Promise<ServerFacts> {
    const http = this.#http;
    const read = new AnswerReader(this.name, "read what it serves");
    await http.get("/health", { signal });
    const version = read.fields((await http.get("/version", { signal })).body, "the version").version;
    for (const route of ["/pause", "/resume", "/collective_rpc", "/reset_prefix_cache"]) {
      if (await http.hasPost(route, signal)) continue;
      const rule = "be started with VLLM_SERVER_DEV_MODE=1, which has the routes that change its weights";
      throw new ServerUnfitError(this.name, rule, `version ${String(version)} without ${route}`);
    }
    const labelled = await http.get("/weight_info", { signal, accepted: [200, 404] });
    this.#keepsLabel = labelled.status === 200;
    const label = this.#keepsLabel ? read.fields(labelled.body, "the label").weight_version : undefined;
    // A gateway that was killed during a change leaves the server paused.
    await http.post("/resume", {}, { signal });
    const models = read.list(
      read.fields((await http.get("/v1/models", { signal })).body, "the models").data,
      "data",
    );
    const entries = models.map((model) => read.fields(model, "a model"));
    const served = entries.find(({ parent }) => parent === undefined || parent === null) ?? {};
    this.#model = read.text(served.id, "the model's id");
    const startModel = typeof served.root === "string" ? served.root : this.#model;
    return {
      name: `vLLM ${String(version)}`,
      maxContextTokens: read.number(served.max_model_len, "max_model_len"),
      takesAdapters: await http.hasPost(LOAD_ADAPTER, signal),
      hasStartWeights: label === START_LABEL || String(label).startsWith(ADAPTER_MARK),
      startModel,
      startSpec: await readStartSpec(startModel),
      scoring: await probeScoring(this, { kind: "whole", label: START_LABEL, folder: startModel }, signal),
    };
  }

  async identify(signal: AbortSignal): Promise<string> {
    const options = { signal, deadlineMs: this.#identifyDeadlineMs };
    await this.#http.get("/health", options);
    if (this.#keepsLabel) {
      // The engine answers this request between two steps; the server itself has just answered.
      const { body } = await this.#http.get("/weight_info", options).catch((error: unknown) => {
        throw error instanceof DeadlineError ? new ServerBusyError(this.name, { cause: error }) : error;
      });
      const read = new AnswerReader(this.name, "read the label of its weights");
      return read.text(read.fields(body, "the answer").weight_version, "weight_version");
    }
    const { body } = await this.#http.get("/metrics", { ...options, accepted: [200, 404] });
    return /^process_start_time_seconds (\S+)/m.exec(String(body))?.[1] ?? "";
  }

  async *generate(call: ServerCall, signal: AbortSignal): AsyncGenerator<ServerChunk> {
    try {
      for await (const event of this.#http.events("/v1/completions", this.#bodyOf(call), signal)) {
        const chunk = readCompletionChunk(this.name, event);
        if (chunk !== undefined) yield chunk;
      }
    } catch (error) {
      // Closing the connection ends the generation on the server.
      if (!signal.aborted) throw error;
    }
  }

  /** V1 */
  #bodyOf({ promptIds, sampling, maxNewTokens, seed, weights, isStreaming }: ServerCall): object {
    return {
      model: weights.kind === "adapter" ? weights.label : this.#model,
      prompt: promptIds,
      add_special_tokens: false,
      max_tokens: maxNewTokens,
      n: 1,
      ...shapingRequest(sampling),
      seed,
      logprobs: sampling.topLogprobs ?? 0,
      stop: [],
      stop_token_ids: sampling.stopTokenIds,
      // The caller's stop tokens are the only ones.
      ignore_eos: true,
      skip_special_tokens: false,
      return_token_ids: true,
      return_tokens_as_token_ids: true,
      cache_salt: weights.label, // V3
      stream: true,
      stream_options: { include_usage: true },
      stream_interval: isStreaming ? 1 : CHUNK_TOKENS,
    };
  }

  async load(weights: ServerWeights, signal: AbortSignal): Promise<void> {
    if (weights.kind === "adapter") await this.#loadAdapter(weights, signal);
    else await this.#loadWhole(weights, signal);
  }

  /** V2 */
  async #loadWhole({ folder, label }: ServerWeights, signal: AbortSignal): Promise<void> {
    const deadlineMs = this.#loadDeadlineMs;
    await this.#http.post(PAUSE, {}, { signal, deadlineMs });
    try {
      const kwargs = { weights_path: folder };
      const call = { method: "reload_weights", kwargs, timeout: Math.ceil(deadlineMs / 1_000) };
      await this.#http.post("/collective_rpc", call, { signal, deadlineMs });
      await this.#http.post("/reset_prefix_cache", {}, { signal, deadlineMs });
      await this.#label(label, signal);
    } finally {
      await this.#http.post("/resume", {}, { signal });
    }
  }

  async #loadAdapter({ folder, label }: ServerWeights, signal: AbortSignal): Promise<void> {
    const deadlineMs = this.#loadDeadlineMs;
    // An adapter of this name may be loaded already, by an attempt whose answer was lost.
    await this.#unload(label, signal);
    await this.#http.post(LOAD_ADAPTER, { lora_name: label, lora_path: folder }, { signal, deadlineMs });
    await this.#label(ADAPTER_MARK + label, signal);
  }

  async #label(label: string, signal: AbortSignal): Promise<void> {
    if (this.#keepsLabel) await this.#http.post("/update_weight_version", { new_version: label }, { signal });
  }

  async drop({ kind, label }: ServerWeights, signal: AbortSignal): Promise<void> {
    if (kind === "adapter") await this.#unload(label, signal);
  }

  async #unload(label: string, signal: AbortSignal): Promise<void> {
    const accepted = [200, 400, 404];
    await this.#http.post("/v1/unload_lora_adapter", { lora_name: label }, { signal, accepted });
  }

  close(): void {
    this.#http.close();
  }
}
