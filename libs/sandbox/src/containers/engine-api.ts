/**
 * Asks a container runtime through the Docker Engine API on a Unix socket: Docker, or Podman's compatible service.
 *
 * N1: a runtime that cannot be reached, does not answer in time or answers with a status of 500 or more has failed: that is a
 *     ContainerRuntimeError, which says nothing about the code that runs in a container. What a status below means is for
 *     the caller to say.
 * N2: every request has a deadline, and every answer a bound.
 * N3: paths name no version of the API, so the runtime takes its own: what is used here has been the same since Docker 20.10, and
 *     newer runtimes refuse the numbers of older versions.
 */

import { type IncomingMessage, request } from "node:http";
import { DeadlineError, deadline, describeError, parseJson } from "@hone/core";
import { ContainerRuntimeError } from "../errors.ts";

/** Creating a container takes a second or two; on a machine that is busy, many times that. */
const DEADLINE_MS = 60_000;
/** A list of all containers of a large machine. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/** An answer with a status below 500. */
export interface EngineAnswer {
  readonly status: number;
  /** The body's JSON; undefined where there is none. */
  readonly body: unknown;
}

export interface EngineCall {
  readonly method: "GET" | "POST" | "DELETE";
  /** Such as `/containers/json?all=true`. */
  readonly path: string;
  readonly body?: unknown;
  /** Statuses that are answers; others are failures. */
  readonly allowed: readonly number[];
  readonly signal?: AbortSignal;
}

export class EngineApi {
  readonly #socketPath: string;

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  /** @throws {ContainerRuntimeError} see N1. @throws the signal's reason when it aborts. */
  async call({ method, path, body, allowed, signal }: EngineCall): Promise<EngineAnswer> {
    const what = `${method} ${path.replace(/\?.*/, "")}`;
    return this.#guard(what, signal, (ended) =>
      deadline(
        `the container runtime (${what})`,
        DEADLINE_MS,
        async (inTime) => {
          const response = await this.#send(method, path, body, inTime);
          const text = await readAll(response);
          const status = response.statusCode ?? 0;
          if (!allowed.includes(status)) throw this.#refusal(what, status, text);
          return { status, body: text.trim() === "" ? undefined : parseJson(text) };
        },
        { signal: ended },
      ),
    );
  }

  /**
   * Makes a call whose answer is a stream of bytes, which the caller must read to its end or destroy.
   * @throws as {@link call}.
   */
  async open({ method, path, body, allowed, signal }: EngineCall): Promise<IncomingMessage> {
    return this.#guard(`${method} ${path}`, signal, async (ended) => {
      const response = await this.#send(method, path, body, ended);
      const status = response.statusCode ?? 0;
      if (allowed.includes(status)) return response;
      throw this.#refusal(`${method} ${path}`, status, await readAll(response));
    });
  }

  /** An error of this runtime. */
  failure(reason: string): ContainerRuntimeError {
    return new ContainerRuntimeError(this.#socketPath, reason);
  }

  async #guard<T>(
    what: string,
    signal: AbortSignal | undefined,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    try {
      return await work(signal ?? new AbortController().signal);
    } catch (cause) {
      signal?.throwIfAborted();
      if (cause instanceof ContainerRuntimeError) throw cause;
      const reason = cause instanceof DeadlineError ? cause.message : describeError(cause);
      throw new ContainerRuntimeError(this.#socketPath, `${what}: ${reason}`, { cause });
    }
  }

  #refusal(what: string, status: number, text: string): ContainerRuntimeError {
    return new ContainerRuntimeError(this.#socketPath, `${what}: status ${status}, ${messageIn(text)}`);
  }

  #send(method: string, path: string, body: unknown, signal: AbortSignal): Promise<IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const payload = body === undefined ? undefined : JSON.stringify(body);
    const sent = request(
      {
        socketPath: this.#socketPath,
        path, // N3
        method,
        signal,
        // A connection of its own for each call, so that a broken one affects no other.
        agent: false,
        headers: {
          host: "localhost",
          ...(payload !== undefined && {
            "content-type": "application/json",
            "content-length": Buffer.byteLength(payload),
          }),
        },
      },
      resolve,
    );
    sent.on("error", reject);
    sent.end(payload);
    return promise;
  }
}

async function readAll(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let numBytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    numBytes += chunk.length;
    if (numBytes > MAX_ANSWER_BYTES) throw new RangeError(`an answer of more than ${MAX_ANSWER_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

const SHOWN_CHARACTERS = 300;

/** Errors are `{ "message": "…" }`. */
function messageIn(text: string): string {
  try {
    const body: unknown = JSON.parse(text);
    const message: unknown =
      typeof body === "object" && body !== null ? Reflect.get(body, "message") : undefined;
    if (typeof message === "string") return message.slice(0, SHOWN_CHARACTERS);
  } catch {
    // It is shown as it is.
  }
  return text.slice(0, SHOWN_CHARACTERS);
}
