/**
 * Questions and answers in JSON over a WebSocket, one at a time, limited in time and size.
 *
 * S1: what ends the socket (a failure, its closing, an answer that is too long) ends the question under way and every later one.
 * S2: no redirect is followed, as the headers may hold a key for this host only, and nothing is decompressed.
 */

import { deadline, TerminalError } from "@hone/core";
import { WebSocket } from "ws";

export interface JsonSocketOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly maxMessageBytes: number;
  /** For the handshake, and for each answer. */
  readonly timeoutMs: number;
}

/** The server answered the handshake with a status of its own. */
export class HandshakeRefusedError extends Error {
  readonly status: number;

  constructor(status: number) {
    super(`the handshake was answered with status ${status}`);
    this.status = status;
  }
}

/** Answers that nobody asked for; a server that sends more is not understood. */
const MAX_WAITING = 4;
/** After a goodbye the server closes the connection; this long it is waited for. */
const GOODBYE_MS = 1_000;
/** After that, for what the WebSocket's own closing takes. */
const CLOSE_GRACE_MS = 1_000;

export class JsonSocket {
  readonly #url: string;
  readonly #timeoutMs: number;
  readonly #socket: WebSocket;
  readonly #opened: Promise<void>;
  /** Answers that came before their question was waited for. */
  readonly #waiting: string[] = [];
  readonly #ended = Promise.withResolvers<never>();
  #take: ((text: string) => void) | undefined;

  constructor(url: string, { headers, maxMessageBytes, timeoutMs }: JsonSocketOptions) {
    this.#url = url;
    this.#timeoutMs = timeoutMs;
    this.#socket = new WebSocket(url, {
      headers,
      maxPayload: maxMessageBytes,
      handshakeTimeout: timeoutMs,
      perMessageDeflate: false,
      followRedirects: false,
    });
    const { promise: opened, resolve } = Promise.withResolvers<void>();
    this.#opened = opened;
    this.#ended.promise.catch(() => undefined);
    this.#socket.once("open", resolve);
    this.#socket.once("unexpected-response", (_request, response) => {
      response.destroy();
      this.#end(new HandshakeRefusedError(response.statusCode ?? 0));
    });
    this.#socket.on("error", (error) => this.#end(error));
    this.#socket.once("close", (code) => this.#end(new Error(`the connection was closed with code ${code}`)));
    this.#socket.on("message", (data) => this.#receive(data.toString()));
  }

  /**
   * Sends a message and waits for the next answer.
   * @returns the answer's text.
   * @throws the error that ended the socket; {DeadlineError} when no answer comes in time.
   */
  ask(message: unknown): Promise<string> {
    return deadline(`the answer of ${this.#url}`, this.#timeoutMs, async () => {
      await Promise.race([this.#opened, this.#ended.promise]);
      const { promise: answer, resolve } = Promise.withResolvers<string>();
      const early = this.#waiting.shift();
      if (early !== undefined) return early;
      this.#take = resolve;
      this.#socket.send(JSON.stringify(message));
      return Promise.race([answer, this.#ended.promise]);
    });
  }

  /** Says goodbye with a last message, and closes the socket; a question under way fails. */
  async close(message: unknown): Promise<void> {
    this.#end(new TerminalError("ENVIRONMENT_CLOSED", "the environment was closed during a call"));
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    if (this.#socket.readyState !== WebSocket.OPEN) {
      this.#socket.terminate();
      return;
    }
    this.#socket.once("close", () => resolve());
    this.#socket.send(JSON.stringify(message));
    const isClosed = (ms: number) =>
      deadline("the end of the connection", ms, () => closed).then(
        () => true,
        () => false,
      );
    if (await isClosed(GOODBYE_MS)) return;
    this.#socket.close();
    if (!(await isClosed(CLOSE_GRACE_MS))) this.#socket.terminate();
  }

  #receive(text: string): void {
    const take = this.#take;
    this.#take = undefined;
    if (take !== undefined) take(text);
    else if (this.#waiting.length < MAX_WAITING) this.#waiting.push(text);
    else this.#end(new Error("the server sends answers that were not asked for"));
  }

  #end(error: Error): void {
    this.#ended.reject(error);
  }
}
