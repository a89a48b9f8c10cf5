/**
 * An SGLang server (0.5.8 and newer) as an {@link EngineServer}: its native `/generate`, by token ids.
 *
 * L1: every sampling parameter is sent, as the model's generation_config.json would set the others.
 * L2: the server is paused while its weights change; requests that it still runs are ended, and its K/V is cleared. Releases
 *     without a pause end their requests with the change.
 * L3: a generation without streaming is requested as one answer, as each chunk would repeat all tokens so far.
 *
 * Its logprobs are those before top-p, top-k and min-p. Seeds have an effect only with `--enable-deterministic-inference`.
 */

import { delay } from "@hone/core";
import { shapingRequest } from "../../domain/engine-parameters.ts";
import { ServerRefusedError, ServerUnfitError } from "../../domain/errors.ts";
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
import { AnswerReader, type Fields } from "../http/fields.ts";
import { HttpClient } from "../http/http-client.ts";
import { probeScoring } from "../probe-scoring.ts";
import { readStartSpec } from "../read-start-spec.ts";
import { SglangChunks } from "./sglang-chunks.ts";

export interface SglangServerOptions {
  readonly url: string;
  readonly apiKey?: string | undefined;
  /** Key of the routes that control the server, if they have their own (`--admin-api-key`). */
  readonly adminKey?: string | undefined;
  /** Longest change of weights. @default 900_000 */
  readonly loadDeadlineMs?: number;
}

const DEFAULT_LOAD_DEADLINE_MS = 900_000;
/** A server that does not answer for this long counts as dead; its engine may be in a long step. */
const IDENTIFY_DEADLINE_MS = 10_000;
/** How long to wait for the answer of an aborted call, which has the tokens so far. */
const ABORT_GRACE_MS = 400;
const EITHER = [200, 404];

export class SglangServer implements EngineServer {
  readonly name: string;
  // sampling_params.py: below _SAMPLING_EPS it is greedy.
  readonly bounds: SamplingBounds = { minTemperature: 1e-6, maxTemperature: 100, maxRepetitionPenalty: 2 };
  readonly #http: HttpClient;
  readonly #loadDeadlineMs: number;
  #canPause = false;
  #takesSeed = false;
  /** Whether answers have the label that the last change gave the weights. */
  #tellsLabel = false;
  /** `/model_info` in new releases, `/get_model_info` in old ones. */
  #infoRoute = "/model_info";

  constructor(options: SglangServerOptions) {
    const { url, apiKey, adminKey, loadDeadlineMs = DEFAULT_LOAD_DEADLINE_MS } = options;
    this.name = `SGLang at ${url}`;
    this.#http = new HttpClient({ name: this.name, url, apiKey, adminKey });
    this.#loadDeadlineMs = loadDeadlineMs;
  }

  async inspect(signal: AbortSignal): Promise<ServerFacts> {
    const http = this.#http;
    const read = new AnswerReader(this.name, "read what it serves");
    const control = { signal, isControl: true };
    // A gateway that was killed during a change leaves the server paused, and a paused server is not healthy.
    await http.post("/continue_generation", {}, { ...control, accepted: EITHER });
    await http.get("/health", { signal });
    const { status } = await http.get("/model_info", { signal, accepted: EITHER });
    this.#infoRoute = status === 200 ? "/model_info" : "/get_model_info";
    const { model_path: path, weight_version: label } = await this.#info(signal);
    const startModel = read.text(path, "model_path");
    if (!(await http.hasPost("/update_weights_from_disk", signal))) {
      throw new ServerUnfitError(this.name, "have /update_weights_from_disk", "a release without it");
    }
    this.#canPause = await http.hasPost("/pause_generation", signal);
    const models = read.fields((await http.get("/v1/models", { signal })).body, "the models");
    const [model] = read.list(models.data, "data");
    const settings = await this.#settings(signal);
    this.#takesSeed = await this.#isSeedTaken(startModel, signal);
    return {
      name: `SGLang ${typeof settings.version === "string" ? settings.version : ""}`.trim(),
      maxContextTokens: read.number(read.fields(model, "a model").max_model_len, "max_model_len"),
      takesAdapters:
        (settings.enable_lora ?? false) !== false && (await http.hasPost("/load_lora_adapter", signal)),
      hasStartWeights: label === START_LABEL || String(label).startsWith(ADAPTER_MARK),
      startModel,
      startSpec: await readStartSpec(startModel),
      scoring: await probeScoring(this, { kind: "whole", label: START_LABEL, folder: startModel }, signal),
    };
  }

  async identify(signal: AbortSignal): Promise<string> {
    const { weight_version: label } = await this.#info(signal);
    return typeof label === "string" ? label : "";
  }

  async #info(signal: AbortSignal): Promise<Fields> {
    const options = { signal, deadlineMs: IDENTIFY_DEADLINE_MS };
    const { body } = await this.#http.get(this.#infoRoute, options);
    return new AnswerReader(this.name, "read what it serves").fields(body, "the answer");
  }

  /** Its version and flags; empty if they cannot be read. */
  async #settings(signal: AbortSignal): Promise<Fields> {
    const route = this.#infoRoute === "/model_info" ? "/server_info" : "/get_server_info";
    const { status, body } = await this.#http.get(route, { signal, isControl: true, accepted: EITHER });
    return status === 200 ? new AnswerReader(this.name, "read its settings").fields(body, "the answer") : {};
  }

  async #isSeedTaken(folder: string, signal: AbortSignal): Promise<boolean> {
    const sampling = { temperature: 1, topP: 1, topK: 0, maxNewTokens: 1, stopTokenIds: [] };
    const weights = { kind: "whole", label: START_LABEL, folder } as const;
    const call = { promptIds: [1], sampling, maxNewTokens: 1, seed: 1, weights, isStreaming: false };
    this.#takesSeed = true;
    try {
      for await (const _ of this.generate(call, signal));
      return true;
    } catch (error) {
      if (error instanceof ServerRefusedError) return false;
      throw error;
    }
  }

  async *generate(call: ServerCall, signal: AbortSignal): AsyncGenerator<ServerChunk> {
    const rid = crypto.randomUUID();
    const body = this.#bodyOf(rid, call);
    const chunks = new SglangChunks(this.name, this.#tellsLabel);
    try {
      if (call.isStreaming) {
        for await (const event of this.#http.events("/generate", body, signal)) yield chunks.read(event);
      } else {
        const answer = await this.#whole(rid, body, signal);
        if (answer !== undefined) yield chunks.read(answer);
      }
    } catch (error) {
      // Closing the connection ends the generation on the server.
      if (!signal.aborted) throw error;
    }
  }

  /** L3 @returns undefined when the call was aborted and its answer did not come soon. */
  async #whole(rid: string, body: object, signal: AbortSignal): Promise<unknown> {
    if (signal.aborted) return undefined;
    const waiting = new AbortController();
    const onAbort = () => {
      const told = this.#http.post(
        "/abort_request",
        { rid, abort_all: false },
        { signal: waiting.signal, isControl: true },
      );
      // Closing the connection ends it as well.
      const ended = Promise.all([told, delay(ABORT_GRACE_MS, { signal: waiting.signal })]);
      ended.then(
        () => waiting.abort(),
        () => waiting.abort(),
      );
    };
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      const deadlineMs = 2 ** 31 - 1; // The caller's signal ends it.
      return (await this.#http.post("/generate", body, { signal: waiting.signal, deadlineMs })).body;
    } catch (error) {
      if (signal.aborted) return undefined;
      throw error;
    } finally {
      signal.removeEventListener("abort", onAbort);
      waiting.abort();
    }
  }

  /** L1 */
  #bodyOf(
    rid: string,
    { promptIds, sampling, maxNewTokens, seed, weights, isStreaming }: ServerCall,
  ): object {
    return {
      rid,
      input_ids: promptIds,
      sampling_params: {
        max_new_tokens: maxNewTokens,
        ...shapingRequest(sampling),
        top_k: sampling.topK === 0 ? -1 : sampling.topK,
        stop_token_ids: sampling.stopTokenIds,
        // ignore_eos would also switch off the stop tokens of the caller.
        ignore_eos: false,
        skip_special_tokens: false,
        no_stop_trim: true,
        // 31 bits, as the seed becomes a tensor of int32 in some releases.
        ...(this.#takesSeed && { sampling_seed: seed % 2 ** 31 }),
      },
      return_logprob: true,
      logprob_start_len: -1,
      top_logprobs_num: sampling.topLogprobs ?? 0,
      return_text_in_logprobs: false,
      stream: isStreaming,
      ...(weights.kind === "adapter" && { lora_path: weights.label }),
    };
  }

  async load(weights: ServerWeights, signal: AbortSignal): Promise<void> {
    if (weights.kind === "adapter") await this.#loadAdapter(weights, signal);
    else await this.#loadWhole(weights, signal);
    this.#tellsLabel = (await this.identify(signal)) === weights.label;
  }

  /** L2 */
  async #loadWhole({ folder, label }: ServerWeights, signal: AbortSignal): Promise<void> {
    const body = {
      model_path: folder,
      weight_version: label,
      flush_cache: true,
      abort_all_requests: !this.#canPause,
    };
    if (this.#canPause) await this.#control("/pause_generation", { mode: "abort" }, signal);
    try {
      await this.#control("/update_weights_from_disk", body, signal);
    } finally {
      if (this.#canPause) await this.#control("/continue_generation", {}, signal);
    }
  }

  async #loadAdapter({ folder, label }: ServerWeights, signal: AbortSignal): Promise<void> {
    // An adapter of this name may be loaded already, by an attempt whose answer was lost.
    await this.#unload(label, signal);
    await this.#control("/load_lora_adapter", { lora_name: label, lora_path: folder }, signal);
    const version = { new_version: ADAPTER_MARK + label, abort_all_requests: false };
    await this.#http.post("/update_weight_version", version, { signal, isControl: true, accepted: EITHER });
  }

  /** @throws {ServerRefusedError} also if the status is 200 but the answer says that it failed. */
  async #control(route: string, body: object, signal: AbortSignal): Promise<void> {
    const deadlineMs = this.#loadDeadlineMs;
    const answer = await this.#http.post(route, body, { signal, deadlineMs, isControl: true });
    const { success, message, error_message: reason } = (answer.body ?? {}) as Fields;
    if (success === false) {
      throw new ServerRefusedError(
        this.name,
        `call ${route}`,
        answer.status,
        String(message ?? reason ?? "no success"),
      );
    }
  }

  async drop({ kind, label }: ServerWeights, signal: AbortSignal): Promise<void> {
    if (kind === "adapter") await this.#unload(label, signal);
  }

  async #unload(label: string, signal: AbortSignal): Promise<void> {
    const options = { signal, isControl: true, accepted: [200, 400, 404] };
    await this.#http.post("/unload_lora_adapter", { lora_name: label }, options);
  }

  close(): void {
    this.#http.close();
  }
}
