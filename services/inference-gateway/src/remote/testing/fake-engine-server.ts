/**
 * The common part of the test servers: HTTP answers like FastAPI's, generation token by token, weights
 * from a folder, and faults.
 *
 * Their model is a hash of the folder's file, so other weights give other logits. Sampling follows
 * all the real rules, so that an engine with such a server can run the suite.
 */

import { createHash } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { Random } from "@hone/core";
import type { TokenLogprob } from "../../domain/inference-engine.ts";
import { Sampler } from "../../domain/sampling/sampler.ts";

export interface FakeServerOptions {
  /** Folder that it is "started with". */
  readonly folder: string;
  readonly vocabularySize: number;
  readonly maxContextTokens: number;
  /** The distribution of its logprobs. */
  readonly scoring: "processed" | "tempered" | "raw";
  readonly takesAdapters?: boolean;
  /** Tokens of a chunk. @default 1 */
  readonly chunkTokens?: number;
  /** Tokens that end every generation, as a model's own end of text. */
  readonly eosTokenIds?: readonly number[];
}

export interface FakeSampling {
  readonly temperature: number;
  readonly topP: number;
  readonly topK: number;
  readonly minP: number;
  readonly topLogprobs: number;
}

/** A request that is being generated. */
export interface FakeRequest {
  readonly id: string;
  readonly promptIds: readonly number[];
  readonly sampling: FakeSampling;
  readonly maxTokens: number;
  readonly stopTokenIds: readonly number[];
  readonly seed: number;
  readonly ids: number[];
  readonly logprobs: number[];
  readonly tops: (readonly TokenLogprob[])[];
  /** The weight label of each token. */
  readonly labels: string[];
  end: "stop" | "length" | "abort" | undefined;
  /** The last token ended it by itself. */
  matched: number | undefined;
}

export interface RecordedCall {
  readonly path: string;
  readonly body: Record<string, unknown>;
  readonly authorization: string | undefined;
}

export type Route = (request: {
  readonly body: Record<string, unknown>;
  readonly query: URLSearchParams;
  readonly response: ServerResponse;
}) => Promise<void> | void;

export const START_LABEL = "default";

export abstract class FakeEngineServer {
  protected readonly options: FakeServerOptions;
  /** `POST /path` */
  protected readonly routes = new Map<string, Route>();
  readonly calls: RecordedCall[] = [];
  readonly running = new Set<FakeRequest>();
  /** Called before each token: a test may wait here, change something, or throw. */
  beforeToken: (request: FakeRequest) => Promise<void> | void = () => undefined;
  /** Answers instead of a route, once for each entry. */
  readonly failures = new Map<string, { readonly status: number; readonly body: object }[]>();
  protected label = START_LABEL;
  protected isPaused = false;
  /** Requests wait here while it is paused. */
  #resumed = Promise.withResolvers<void>();
  /** By name. */
  protected readonly adapters = new Map<string, number>();
  #weights: number;
  #server: Server | undefined;
  #port = 0;
  readonly #sampler: Sampler;

  constructor(options: FakeServerOptions) {
    this.options = options;
    this.#weights = hashOf(options.folder);
    this.#sampler = new Sampler(options.vocabularySize);
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Starts again after {@link kill} on the same port, like a new process with the weights of its start. */
  async start(): Promise<this> {
    this.#weights = hashOf(this.options.folder);
    this.label = START_LABEL;
    this.adapters.clear();
    this.setPaused(false);
    this.#server = createServer((request, response) => void this.#answer(request, response));
    this.#server.listen(this.#port, "127.0.0.1");
    await once(this.#server, "listening");
    this.#port = (this.#server.address() as AddressInfo).port;
    return this;
  }

  /** Closes every connection as SIGKILL does. */
  async kill(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    for (const request of this.running) request.end = "abort";
    const closed = once(server, "close");
    server.close();
    server.closeAllConnections();
    await closed;
  }

  fail(route: string, status: number, body: object): void {
    this.failures.set(route, [...(this.failures.get(route) ?? []), { status, body }]);
  }

  protected setPaused(isPaused: boolean): void {
    this.isPaused = isPaused;
    if (isPaused) this.#resumed = Promise.withResolvers();
    else this.#resumed.resolve();
  }

  /** @throws when the folder holds no weights. */
  protected setWeights(folder: string, label: string | undefined): void {
    this.#weights = hashOf(folder);
    if (label !== undefined) this.label = label;
  }

  protected addAdapter(name: string, folder: string): void {
    this.adapters.set(name, hashOf(folder));
  }

  protected abortAll(): void {
    for (const request of this.running) request.end = "abort";
  }

  /** Generates to the end. @param onTokens called with new tokens, at most once a chunk. */
  protected async generate(
    request: FakeRequest,
    adapter: string | undefined,
    response: ServerResponse,
    onTokens: (() => void) | undefined,
  ): Promise<void> {
    this.running.add(request);
    response.once("close", () => {
      request.end ??= "abort";
    });
    const random = new Random(request.seed);
    let told = 0;
    try {
      while (request.end === undefined) {
        await new Promise(setImmediate);
        await this.beforeToken(request);
        while (this.isPaused && request.end === undefined) await this.#resumed.promise;
        if (request.end !== undefined) break;
        this.#step(request, adapter, random.next());
        if (request.ids.length - told < (this.options.chunkTokens ?? 1) && request.end === undefined)
          continue;
        told = request.ids.length;
        onTokens?.();
      }
      if (told < request.ids.length || request.end === "abort") onTokens?.();
    } finally {
      this.running.delete(request);
    }
  }

  #step(request: FakeRequest, adapter: string | undefined, uniform: number): void {
    const { ids, promptIds, sampling, maxTokens, stopTokenIds } = request;
    const weights = this.#weights ^ (adapter === undefined ? 0 : (this.adapters.get(adapter) ?? 0));
    const logits = this.#logits(weights, [...promptIds, ...ids]);
    const sampler = this.#sampler;
    const { temperature, topLogprobs } = sampling;
    sampler.sample(logits, sampling, uniform);
    const { tokenId, top } = sampler;
    const { scoring } = this.options;
    // Both engines give the logprobs of the model itself when they choose the most likely token.
    const isOwn = scoring === "raw" || temperature === 0;
    const isProcessed = scoring === "processed" && !isOwn;
    const told = isProcessed ? [] : logSoftmax(logits, isOwn ? 1 : temperature);
    ids.push(tokenId);
    request.logprobs.push(isProcessed ? sampler.logprob : told[tokenId]!);
    if (topLogprobs > 0) request.tops.push(isProcessed ? top : likeliest(told, topLogprobs));
    request.labels.push(this.label);
    if (stopTokenIds.includes(tokenId) || this.options.eosTokenIds?.includes(tokenId)) {
      request.end = "stop";
      request.matched = tokenId;
    } else if (ids.length >= maxTokens || promptIds.length + ids.length >= this.options.maxContextTokens) {
      request.end = "length";
    }
  }

  #logits(weights: number, context: readonly number[]): Float32Array {
    let state = weights | 0;
    for (const id of context) state = mix(state, id + 1);
    return Float32Array.from(
      { length: this.options.vocabularySize },
      (_, id) => (mix(state, -id - 1) & 0xffff) / 0x4000,
    );
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url!, this.url);
    // A client that went away does not read the answer.
    response.on("error", () => undefined);
    try {
      const parts: Buffer[] = [];
      for await (const part of request as AsyncIterable<Buffer>) parts.push(part);
      const text = Buffer.concat(parts).toString("utf8");
      const body = (text === "" ? {} : JSON.parse(text)) as Record<string, unknown>;
      const name = `${request.method} ${url.pathname}`;
      this.calls.push({ path: name, body, authorization: request.headers.authorization });
      const failure = this.failures.get(name)?.shift();
      if (failure !== undefined) return answerJson(response, failure.body, failure.status);
      const route = this.routes.get(name);
      if (route !== undefined) return await route({ body, query: url.searchParams, response });
      const isKnown = ["GET", "POST"].some((method) => this.routes.has(`${method} ${url.pathname}`));
      answerJson(response, { detail: isKnown ? "Method Not Allowed" : "Not Found" }, isKnown ? 405 : 404);
    } catch (error) {
      if (response.headersSent) response.destroy();
      else answerJson(response, { error: { message: String(error), code: 500 } }, 500);
    }
  }
}

export function answerJson(response: ServerResponse, body: object, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

export function beginEvents(response: ServerResponse): (data: object | "[DONE]") => void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  return (data) => void response.write(`data: ${data === "[DONE]" ? data : JSON.stringify(data)}\n\n`);
}

/** Both engines load every such file of a folder as weights. */
function hashOf(folder: string): number {
  const names = ["model.safetensors", "adapter_model.safetensors"];
  const stranger = readdirSync(folder).find((name) => name.endsWith(".safetensors") && !names.includes(name));
  if (stranger !== undefined) throw new Error("There is no module or parameter named 'm'");
  const hash = createHash("sha256");
  for (const name of names) {
    try {
      return hash
        .update(readFileSync(path.join(folder, name)))
        .digest()
        .readInt32LE();
    } catch {
      // The other one.
    }
  }
  throw new Error(`Cannot find any model weights with \`${folder}\``);
}

function logSoftmax(logits: Float32Array, temperature: number): number[] {
  const scaled = Array.from(logits, (logit) => logit / temperature);
  const max = Math.max(...scaled);
  const total = Math.log(scaled.reduce((sum, value) => sum + Math.exp(value - max), 0)) + max;
  return scaled.map((value) => value - total);
}

function likeliest(logprobs: readonly number[], count: number): TokenLogprob[] {
  return logprobs
    .map((logprob, tokenId) => ({ tokenId, logprob }))
    .sort((a, b) => b.logprob - a.logprob)
    .slice(0, count);
}

function mix(state: number, value: number): number {
  let x = Math.imul(state ^ Math.imul(value, 0x9e3779b1), 0x85ebca6b);
  x ^= x >>> 13;
  x = Math.imul(x, 0xc2b2ae35);
  return x ^ (x >>> 16);
}
