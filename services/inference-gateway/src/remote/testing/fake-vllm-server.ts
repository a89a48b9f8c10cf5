/** A test server with the HTTP API of newer and older releases of vLLM. */

import type { ServerResponse } from "node:http";
import {
  answerJson,
  beginEvents,
  FakeEngineServer,
  type FakeRequest,
  type FakeServerOptions,
} from "./fake-engine-server.ts";

export interface FakeVllmOptions extends FakeServerOptions {
  /** Without the routes of VLLM_SERVER_DEV_MODE. @default true */
  readonly isDevelopment?: boolean;
  /** Whether it has `/weight_info`, `token_ids` and the count of cached tokens. @default true */
  readonly isNew?: boolean;
}

const MODEL = "the-model";

export class FakeVllmServer extends FakeEngineServer {
  /** During a step only the server answers, and not its engine. */
  isEngineBusy = false;
  readonly #isNew: boolean;
  readonly #startedAt = Date.now();
  #starts = 0;

  constructor(options: FakeVllmOptions) {
    super(options);
    const { isDevelopment = true, isNew = true, takesAdapters = false } = options;
    this.#isNew = isNew;
    const { routes } = this;
    routes.set("GET /health", ({ response }) => void response.writeHead(200).end());
    routes.set("GET /version", ({ response }) =>
      answerJson(response, { version: isNew ? "0.32.0" : "0.18.0" }),
    );
    routes.set("GET /metrics", ({ response }) => {
      // Of the metrics of vLLM's V1 engine (docs/design/metrics.md), those that Hone's dashboard reads, and what tells a restart.
      const gauges = ["kv_cache_usage_perc", "num_requests_running", "num_requests_waiting"];
      const own = gauges.map((name) => `vllm:${name}{engine="0",model_name="policy"} 0\n`).join("");
      const started = `process_start_time_seconds ${this.#startedAt + this.#starts}.25\n`;
      response.writeHead(200).end(`# HELP x\n${own}${started}`);
    });
    routes.set("GET /v1/models", ({ response }) =>
      answerJson(response, {
        object: "list",
        data: [
          {
            id: MODEL,
            object: "model",
            root: options.folder,
            parent: null,
            max_model_len: options.maxContextTokens,
          },
          ...[...this.adapters.keys()].map((id) => ({ id, root: id, parent: MODEL, max_model_len: null })),
        ],
      }),
    );
    routes.set("POST /v1/completions", ({ body, response }) => this.#complete(body, response));
    if (isDevelopment) this.#addControl();
    if (takesAdapters) this.#addAdapters();
  }

  override async start(): Promise<this> {
    this.#starts++;
    return super.start();
  }

  #addControl(): void {
    const { routes } = this;
    routes.set("POST /pause", ({ query, response }) => {
      if (query.get("mode") === "abort") this.abortAll();
      this.setPaused(true);
      answerJson(response, { status: "paused" });
    });
    routes.set("POST /resume", ({ response }) => {
      this.setPaused(false);
      answerJson(response, { status: "resumed" });
    });
    routes.set("POST /reset_prefix_cache", ({ response }) => void response.writeHead(200).end());
    routes.set("POST /collective_rpc", ({ body, response }) => {
      const { method, kwargs } = body as { method: string; kwargs: { weights_path: string } };
      if (method !== "reload_weights") throw new Error(`no method ${method}`);
      if (!this.isPaused) throw new Error("weights changed while requests may run");
      this.setWeights(kwargs.weights_path, undefined);
      answerJson(response, { results: [null] });
    });
    if (!this.#isNew) return;
    routes.set("GET /weight_info", ({ response }) => {
      if (!this.isEngineBusy) answerJson(response, { weight_version: this.label });
    });
    routes.set("POST /update_weight_version", ({ body, response }) => {
      this.label = String(body.new_version);
      answerJson(response, { success: true, new_version: this.label });
    });
  }

  #addAdapters(): void {
    this.routes.set("POST /v1/load_lora_adapter", ({ body, response }) => {
      this.addAdapter(String(body.lora_name), String(body.lora_path));
      response.writeHead(200).end(`Success: LoRA adapter '${String(body.lora_name)}' added successfully.`);
    });
    this.routes.set("POST /v1/unload_lora_adapter", ({ body, response }) => {
      const isThere = this.adapters.delete(String(body.lora_name));
      if (isThere) response.writeHead(200).end("Success");
      else answerJson(response, errorOf("The lora adapter cannot be found.", 404), 404);
    });
  }

  async #complete(body: Record<string, unknown>, response: ServerResponse): Promise<void> {
    const {
      model,
      prompt,
      max_tokens: maxTokens,
    } = body as { model: string; prompt: number[]; max_tokens: number };
    if (model !== MODEL && !this.adapters.has(model)) {
      return answerJson(response, errorOf(`The model \`${model}\` does not exist.`, 404), 404);
    }
    if ((body.temperature as number) > 2) {
      return answerJson(response, errorOf("temperature must be in [0, 2]", 400), 400);
    }
    if (prompt.length + maxTokens > this.options.maxContextTokens) {
      const message = `This model's maximum context length is ${this.options.maxContextTokens} tokens.`;
      return answerJson(response, errorOf(message, 400), 400);
    }
    if (/[@/\\\0]/.test(String(body.cache_salt)) || String(body.cache_salt).length > 128) {
      const message = "Parameter 'cache_salt' must be at most 128 characters and must not contain '@', '/'";
      return answerJson(response, errorOf(message, 400), 400);
    }
    const request: FakeRequest = {
      id: "cmpl-1",
      promptIds: prompt,
      sampling: {
        temperature: body.temperature as number,
        topP: body.top_p as number,
        topK: body.top_k as number,
        minP: body.min_p as number,
        topLogprobs: body.logprobs as number,
      },
      maxTokens,
      stopTokenIds: body.stop_token_ids as number[],
      seed: body.seed as number,
      ids: [],
      logprobs: [],
      tops: [],
      labels: [],
      end: undefined,
      matched: undefined,
    };
    const send = beginEvents(response);
    let told = 0;
    await this.generate(request, model === MODEL ? undefined : model, response, () => {
      send(this.#chunk(request, told));
      told = request.ids.length;
    });
    const usage = {
      prompt_tokens: prompt.length,
      completion_tokens: told,
      ...(this.#isNew && { prompt_tokens_details: { cached_tokens: 1 } }),
    };
    send({ id: request.id, object: "text_completion", choices: [], usage });
    send("[DONE]");
    response.end();
  }

  #chunk({ id, ids, logprobs, tops, end }: FakeRequest, from: number): object {
    const name = (token: number) => `token_id:${token}`;
    const choice = {
      index: 0,
      text: "",
      logprobs: {
        tokens: ids.slice(from).map(name),
        token_logprobs: logprobs.slice(from),
        top_logprobs: tops
          .slice(from)
          .map((top) => Object.fromEntries(top.map((token) => [name(token.tokenId), token.logprob]))),
        text_offset: ids.slice(from).map(() => 0),
      },
      finish_reason: end ?? null,
      stop_reason: null,
      ...(this.#isNew && { token_ids: ids.slice(from) }),
    };
    return { id, object: "text_completion", created: 1, model: MODEL, choices: [choice] };
  }
}

function errorOf(message: string, code: number): object {
  return { error: { message, type: code === 404 ? "NotFoundError" : "BadRequestError", param: null, code } };
}
