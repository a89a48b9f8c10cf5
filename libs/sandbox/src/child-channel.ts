/**
 * A child process of the sandbox and the frames that are exchanged with it.
 *
 * C1: one reader (frame-reader.ts) reads what the child sends and passes it on frame by frame; the first violation of the
 *     protocol ends the child.
 * C2: a child that waits for code does not keep this process from exiting.
 */

import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { type Frame, FrameReader, ProtocolError } from "./frame-reader.ts";
import { NONCE_BYTES } from "./protocol.ts";

const MAX_ERROR_CHARACTERS = 2_000;
/** Signals by which the kernel or the runtime ends a process for its own fault; any other signal was sent by another process. */
const OWN_SIGNALS: ReadonlySet<NodeJS.Signals> = new Set([
  "SIGABRT",
  "SIGBUS",
  "SIGFPE",
  "SIGILL",
  "SIGPIPE",
  "SIGSEGV",
  "SIGSYS",
  "SIGTRAP",
  "SIGXCPU",
  "SIGXFSZ",
]);

/** Is called when something happens to a child. */
export interface ChildListener {
  onFrame(frame: Frame): void;
  /** The child ended, or was ended because it broke the protocol. */
  onEnd(reason: string, isBySignal: boolean): void;
}

export class ChildChannel {
  readonly #child: ChildProcess;
  readonly #reader = new FrameReader();
  #listener: ChildListener | undefined;
  #end: { readonly reason: string; readonly isBySignal: boolean } | undefined;
  #errorOutput = "";

  constructor(child: ChildProcess) {
    this.#child = child;
    child.stdout?.on("data", (chunk: Buffer) => this.#read(chunk));
    child.stderr?.on("data", (chunk: Buffer) => {
      this.#errorOutput = (this.#errorOutput + chunk.toString()).slice(-MAX_ERROR_CHARACTERS);
    });
    child.once("error", (error) => this.#ended(error.message, false));
    child.once("exit", (code, signal) =>
      this.#ended(signal ?? `exit code ${code}`, signal !== null && !OWN_SIGNALS.has(signal)),
    );
    // A broken pipe needs no handling: the process ends as well.
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.on("error", () => undefined);
    this.keepAlive(false);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get isAlive(): boolean {
    return this.#end === undefined;
  }

  /** The last characters that it wrote to its standard error. */
  get errorOutput(): string {
    return this.#errorOutput;
  }

  /**
   * Sets the listener; undefined = none, and any frame that the child then sends breaks the protocol.
   * @returns the nonce of the frames that the listener gets.
   */
  listen(listener: ChildListener | undefined, maxPayloadBytes = 0): Buffer {
    const nonce = randomBytes(NONCE_BYTES);
    this.#reader.expect(nonce, maxPayloadBytes);
    this.#listener = listener;
    if (this.#end !== undefined) listener?.onEnd(this.#end.reason, this.#end.isBySignal);
    return nonce;
  }

  /** Sends one frame: a length and the payload. */
  send(payload: Uint8Array): void {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(payload.length);
    this.sendBare(length);
    this.sendBare(payload);
  }

  /** Sends bytes without a length. */
  sendBare(bytes: Uint8Array): void {
    this.#child.stdin?.write(bytes);
  }

  /** Drops its error output from now on. The pipe stays open, because the runtime aborts when it cannot write to it. */
  dropErrorOutput(): void {
    this.#child.stderr?.removeAllListeners("data").resume();
  }

  /** Sets whether the child keeps this process from exiting (C2). */
  keepAlive(isKept: boolean): void {
    const child = this.#child;
    const streams = [child.stdin, child.stdout, child.stderr] as (Socket | null)[];
    if (isKept) {
      child.ref();
      for (const stream of streams) stream?.ref();
    } else {
      child.unref();
      for (const stream of streams) stream?.unref();
    }
  }

  /** Kills the child's whole process group. */
  kill(): void {
    const { pid } = this.#child;
    if (pid === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // The group does not exist yet, or no longer exists.
      this.#child.kill("SIGKILL");
    }
  }

  #read(chunk: Buffer): void {
    if (this.#end !== undefined) return;
    try {
      for (const frame of this.#reader.read(chunk)) {
        if (this.#listener === undefined) throw new ProtocolError("a frame that nobody asked for");
        this.#listener.onFrame(frame);
      }
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#ended(`it sent ${error.message}`, false); // C1
      this.kill();
    }
  }

  #ended(reason: string, isBySignal: boolean): void {
    if (this.#end !== undefined) return;
    this.#end = { reason, isBySignal };
    this.#listener?.onEnd(reason, isBySignal);
  }
}
