/**
 * The HTTP client for the inference server beside this gateway.
 *
 * It uses node:http, as fetch gives up after five minutes without bytes and a load of weights may take longer. Every call
 * has its own deadline or signal. Connections are kept open; if the server closes one just when it is used again,
 * a new one is opened.
 */

import { Agent, type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps, Agent as SecureAgent } from "node:https";
import { deadline, describeError, readText } from "@hone/core";
import { traceHeaders } from "@hone/telemetry";
import { ServerGoneError, ServerRefusedError } from "../../domain/errors.ts";
import { readEvents } from "./read-events.ts";

export interface HttpClientOptions {
  /** The server's name in errors. */
  readonly name: string;
  /** http:// or https://, without a path. */
  readonly url: string;
  /** Bearer token of each call; undefined = none. */
  readonly apiKey?: string | undefined;
  /** Bearer token of calls that control the server. @default apiKey */
  readonly adminKey?: string | undefined;
}

export interface CallOptions {
  readonly signal: AbortSignal;
  /** @default 30_000 */
  readonly deadlineMs?: number;
  readonly isControl?: boolean;
  /** Statuses that are not a refusal. @default 200 */
  readonly accepted?: readonly number[];
}

export interface Answer {
  readonly status: number;
  /** Parsed JSON, or the text if it is not JSON. */
  readonly body: unknown;
}

const DEFAULT_DEADLINE_MS = 30_000;
/** Limit of answers that are read whole; the longest are those of /metrics and the ids of a generation. */
const MAX_ANSWER_BYTES = 64 * 2 ** 20;
const MAX_ERROR_CHARACTERS = 500;
/** Error codes of a connection that the server closed while it was idle. */
const CLOSED_CODES = new Set(["ECONNRESET", "EPIPE"]);
/** uvicorn closes idle connections after five seconds. */
const IDLE_SOCKET_MS = 4_000;

export class HttpClient {
  readonly #options: HttpClientOptions;
  readonly #agent: Agent;
  readonly #isSecure: boolean;

  constructor(options: HttpClientOptions) {
    this.#options = options;
    this.#isSecure = options.url.startsWith("https:");
    const settings = { keepAlive: true, timeout: IDLE_SOCKET_MS };
    this.#agent = this.#isSecure ? new SecureAgent(settings) : new Agent(settings);
  }

  /** @throws {ServerGoneError | ServerRefusedError}, and the signal's reason when it aborts. */
  get(path: string, options: CallOptions): Promise<Answer> {
    return this.#whole("GET", path, undefined, options);
  }

  /** @throws as {@link get} does. */
  post(path: string, body: object, options: CallOptions): Promise<Answer> {
    return this.#whole("POST", path, body, options);
  }

  /**
   * Whether there is such a POST route, without calling it: a GET is answered with 405 if there is one, and else with 404.
   * @throws as {@link get} does.
   */
  async hasPost(path: string, signal: AbortSignal): Promise<boolean> {
    const { status } = await this.get(path, { signal, isControl: true, accepted: [200, 400, 404, 405, 422] });
    return status !== 404;
  }

  /**
   * The data of the server-sent events of an answer, parsed, until `[DONE]`.
   * @throws {ServerGoneError} when the answer ends without it; the signal's reason when it aborts.
   */
  async *events(path: string, body: object, signal: AbortSignal): AsyncGenerator<unknown> {
    const response = await this.#send("POST", path, body, { signal });
    try {
      if (response.statusCode !== 200) throw await this.#refusal(response, `POST ${path}`);
      for await (const data of readEvents(response)) {
        if (data === "[DONE]") return;
        yield parse(data);
      }
    } catch (error) {
      throw this.#translate(error, signal);
    } finally {
      // The rest of an answer that is not read to its end would block the socket.
      if (!response.complete) response.destroy();
    }
    throw new ServerGoneError(this.#options.name, "its answer broke off");
  }

  close(): void {
    this.#agent.destroy();
  }

  async #whole(
    method: string,
    path: string,
    body: object | undefined,
    options: CallOptions,
  ): Promise<Answer> {
    const { accepted = [200], deadlineMs = DEFAULT_DEADLINE_MS } = options;
    const what = `${this.#options.name} to answer ${method} ${path}`;
    return deadline(
      what,
      deadlineMs,
      async (signal) => {
        const response = await this.#send(method, path, body, { ...options, signal });
        try {
          const status = response.statusCode ?? 0;
          if (!accepted.includes(status)) throw await this.#refusal(response, `${method} ${path}`);
          return { status, body: parse(await readText({ body: response }, MAX_ANSWER_BYTES)) };
        } catch (error) {
          throw this.#translate(error, signal);
        }
      },
      options,
    );
  }

  #send(
    method: string,
    path: string,
    body: object | undefined,
    { signal, isControl = false }: Pick<CallOptions, "signal" | "isControl">,
  ): Promise<IncomingMessage> {
    const { url, apiKey, adminKey } = this.#options;
    const key = isControl ? (adminKey ?? apiKey) : apiKey;
    const text = body === undefined ? undefined : JSON.stringify(body);
    const headers: Record<string, string | number> = {
      ...traceHeaders(),
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
      ...(text !== undefined && {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(text),
      }),
    };
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const sending = (this.#isSecure ? requestHttps : requestHttp)(
      new URL(path, url),
      { method, headers, agent: this.#agent, signal },
      resolve,
    );
    sending.on("error", (error) => {
      const isClosed = sending.reusedSocket && "code" in error && CLOSED_CODES.has(String(error.code));
      if (isClosed && !signal.aborted)
        this.#send(method, path, body, { signal, isControl }).then(resolve, reject);
      else reject(this.#translate(error, signal));
    });
    sending.end(text);
    return promise;
  }

  async #refusal(response: IncomingMessage, action: string): Promise<Error> {
    const text = messageOf(parse(await readText({ body: response }, MAX_ANSWER_BYTES)));
    const status = response.statusCode ?? 0;
    // A server that starts, stops or is overloaded answers with these.
    if (status === 502 || status === 503 || status === 504) {
      return new ServerGoneError(this.#options.name, `status ${status}, ${text}`);
    }
    return new ServerRefusedError(this.#options.name, `call ${action}`, status, text);
  }

  #translate(error: unknown, signal: AbortSignal): unknown {
    if (signal.aborted) return signal.reason;
    if (error instanceof ServerGoneError || error instanceof ServerRefusedError) return error;
    return new ServerGoneError(this.#options.name, describeError(error), { cause: error });
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The message in an error's body: `{error: {message}}`, `{error}`, `{message}`, `{detail}`, or the whole text. */
export function messageOf(body: unknown): string {
  let found: unknown = body;
  for (const key of ["error", "message", "detail"]) {
    if (typeof found === "object" && found !== null && key in found) {
      found = (found as Record<string, unknown>)[key];
    }
  }
  const text = typeof found === "string" ? found : JSON.stringify(found ?? "");
  return text.slice(0, MAX_ERROR_CHARACTERS);
}
