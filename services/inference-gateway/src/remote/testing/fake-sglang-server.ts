/** A test server with the HTTP API of newer and older releases of SGLang. */

import type { ServerResponse } from "node:http";
import {
  answerJson,
  beginEvents,
  FakeEngineServer,
  type FakeRequest,
  type FakeServerOptions,
} from "./fake-engine-server.ts";

export interface FakeSglangOptions extends FakeServerOptions {
  /** Pause with modes, `/model_info`, seeds, spans of weight versions. @default true */
  readonly isNew?: boolean;
  /** `--incremental-streaming-output`. @default false */
  readonly isIncremental?: boolean;
}

export class FakeSglangServer extends FakeEngineServer {
  readonly #settings: FakeSglangOptions;

  constructor(options: FakeSglangOptions) {
    super(options);
    this.#settings = options;
    const { isNew = true, takesAdapters = false } = options;
    const { routes } = this;
    routes.set("GET /health", ({ response }) => void response.writeHead(this.isPaused ? 503 : 200).end());
    const info = ({ response }: { response: ServerResponse }) =>
      answerJson(response, { model_path: options.folder, is_generation: true, weight_version: this.label });
    routes.set(isNew ? "GET /model_info" : "GET /get_model_info", info);
    routes.set(isNew ? "GET /server_info" : "GET /get_server_info", ({ response }) =>
      answerJson(response, { version: isNew ? "0.5.16" : "0.5.8", enable_lora: takesAdapters ? true : null }),
    );
    routes.set("GET /v1/models", ({ response }) =>
      answerJson(response, { data: [{ id: options.folder, max_model_len: options.maxContextTokens }] }),
    );
    routes.set("POST /generate", ({ body, response }) => this.#answerGenerate(body, response));
    routes.set("POST /abort_request", ({ body, response }) => {
      for (const request of this.running) {
        if (body.abort_all === true || request.id.startsWith(String(body.rid))) request.end ??= "abort";
      }
      response.writeHead(200).end();
    });
    routes.set("POST /update_weights_from_disk", ({ body, response }) => this.#update(body, response));
    if (isNew) this.#addPause();
    if (takesAdapters) this.#addAdapters();
  }

  /** Makes the next tokens come from other weights, as after a change in place. */
  relabel(label: string): void {
    this.label = label;
  }

  #addPause(): void {
    this.routes.set("POST /pause_generation", ({ body, response }) => {
      if ((body.mode ?? "abort") === "abort") this.abortAll();
      this.setPaused(true);
      answerJson(response, { message: "Generation paused successfully.", status: "ok" });
    });
    this.routes.set("POST /continue_generation", ({ response }) => {
      this.setPaused(false);
      answerJson(response, { message: "Generation continued successfully.", status: "ok" });
    });
    this.routes.set("POST /update_weight_version", ({ body, response }) => {
      if (body.abort_all_requests !== false) this.abortAll();
      this.label = String(body.new_version);
      answerJson(response, { success: true, message: "" });
    });
  }

  #addAdapters(): void {
    this.routes.set("POST /load_lora_adapter", ({ body, response }) => {
      this.addAdapter(String(body.lora_name), String(body.lora_path));
      answerJson(response, { success: true, error_message: "", loaded_adapters: {} });
    });
    this.routes.set("POST /unload_lora_adapter", ({ body, response }) => {
      const success = this.adapters.delete(String(body.lora_name));
      answerJson(response, { success }, success ? 200 : 400);
    });
  }

  /** Waits for running requests, unless it is paused or must abort them. */
  async #update(body: Record<string, unknown>, response: ServerResponse): Promise<void> {
    if (body.abort_all_requests === true) this.abortAll();
    while (!this.isPaused && this.running.size > 0) await new Promise(setImmediate);
    try {
      this.setWeights(String(body.model_path), String(body.weight_version));
      answerJson(response, {
        success: true,
        message: "Succeeded to update model weights.",
        num_paused_requests: 0,
      });
    } catch (error) {
      answerJson(response, { success: false, message: String(error), num_paused_requests: 0 }, 400);
    }
  }

  async #answerGenerate(body: Record<string, unknown>, response: ServerResponse): Promise<void> {
    const { isNew = true, maxContextTokens } = this.#settings;
    const sampling = body.sampling_params as Record<string, number> & { stop_token_ids: number[] };
    const promptIds = body.input_ids as number[];
    const adapter = body.lora_path as string | undefined;
    const refuse = (message: string) => answerJson(response, { error: { message } }, 400);
    if (!isNew && "sampling_seed" in sampling) return refuse("unexpected keyword argument 'sampling_seed'");
    if (promptIds.length >= maxContextTokens)
      return refuse("The input is longer than the model's context length.");
    if (adapter !== undefined && !this.adapters.has(adapter))
      return refuse(`LoRA adapter ${adapter} is not loaded.`);
    const request: FakeRequest = {
      id: String(body.rid),
      promptIds,
      sampling: {
        temperature: sampling.temperature!,
        topP: sampling.top_p!,
        topK: Math.max(0, sampling.top_k!),
        minP: sampling.min_p!,
        topLogprobs: body.top_logprobs_num as number,
      },
      maxTokens: sampling.max_new_tokens!,
      stopTokenIds: sampling.stop_token_ids,
      seed: sampling.sampling_seed ?? Math.floor(Math.random() * 2 ** 31),
      ids: [],
      logprobs: [],
      tops: [],
      labels: [],
      end: undefined,
      matched: undefined,
    };
    if (body.stream !== true) {
      await this.generate(request, adapter, response, undefined);
      return answerJson(response, this.#answer(request, 0));
    }
    const send = beginEvents(response);
    let told = 0;
    await this.generate(request, adapter, response, () => {
      send(this.#answer(request, this.#settings.isIncremental === true ? told : 0));
      told = request.ids.length;
    });
    send("[DONE]");
    response.end();
  }

  #answer(request: FakeRequest, from: number): object {
    const { id, ids, logprobs, tops, labels, end, matched } = request;
    const isEmptyAbort = end === "abort" && ids.length === 0;
    return {
      text: "",
      output_ids: ids.slice(from),
      meta_info: {
        id,
        finish_reason: reasonOf(request, end, matched),
        prompt_tokens: request.promptIds.length,
        completion_tokens: ids.length,
        cached_tokens: 1,
        weight_version: labels.at(-1) ?? this.label,
        ...(this.#settings.isNew !== false && { weight_versions: spansOf(labels) }),
        ...(!isEmptyAbort && {
          output_token_logprobs: ids.slice(from).map((token, i) => [logprobs[from + i], token, null]),
          output_top_logprobs: tops
            .slice(from)
            .map((top) => top.map((token) => [token.logprob, token.tokenId, null])),
        }),
      },
    };
  }
}

function reasonOf({ ids }: FakeRequest, end: FakeRequest["end"], matched: number | undefined): object | null {
  if (end === undefined) return null;
  if (end === "stop") return { type: "stop", matched };
  return end === "length"
    ? { type: "length", length: ids.length }
    : { type: "abort", message: "Aborted by request" };
}

function spansOf(labels: readonly string[]): { version: string; start: number; end: number }[] {
  const spans: { version: string; start: number; end: number }[] = [];
  for (const [at, version] of labels.entries()) {
    const last = spans.at(-1);
    if (last?.version === version) last.end = at + 1;
    else spans.push({ version, start: at, end: at + 1 });
  }
  return spans;
}
