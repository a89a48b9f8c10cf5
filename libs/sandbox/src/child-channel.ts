/**
 * A child process of the sandbox and the frames that go to it and come from it.
 *
 * C1: what comes is read by one reader (frame-reader.ts) and given on frame by frame; the first thing that may not be
 *     there ends the child.
 * C2: a child that waits for code keeps no process from ending.
 */

import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { type Frame, FrameReader, ProtocolError } from "./frame-reader.ts";
import { NONCE_BYTES } from "./protocol.ts";

const MAX_COMPLAINT = 2_000;
/** How the kernel and the runtime end a process for what it did itself; every other signal came from somebody else. */
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

/** What happens to a child, told once it happens. */
export interface ChildListener {
  onFrame(frame: Frame): void;
  /** It ended, or was ended as it said what it may not say. */
  onEnd(reason: string, isBySignal: boolean): void;
}

export class ChildChannel {
  readonly #child: ChildProcess;
  readonly #reader = new FrameReader();
  #listener: ChildListener | undefined;
  #end: { readonly reason: string; readonly isBySignal: boolean } | undefined;
  #complaint = "";

  constructor(child: ChildProcess) {
    this.#child = child;
    child.stdout?.on("data", (chunk: Buffer) => this.#read(chunk));
    child.stderr?.on("data", (chunk: Buffer) => {
      this.#complaint = (this.#complaint + chunk.toString()).slice(-MAX_COMPLAINT);
    });
    child.once("error", (error) => this.#ended(error.message, false));
    child.once("exit", (code, signal) =>
      this.#ended(signal ?? `exit code ${code}`, signal !== null && !OWN_SIGNALS.has(signal)),
    );
    // A pipe that breaks is seen by the end of the process.
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.on("error", () => undefined);
    this.holdUp(false);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get isAlive(): boolean {
    return this.#end === undefined;
  }

  /** The last that it wrote to its standard error. */
  get complaint(): string {
    return this.#complaint;
  }

  /** Who is told from now on; undefined = nobody, and the child has nothing to say. */
  listen(listener: ChildListener | undefined, maxPayloadBytes = 0): Buffer {
    const nonce = randomBytes(NONCE_BYTES);
    this.#reader.expect(nonce, maxPayloadBytes);
    this.#listener = listener;
    if (this.#end !== undefined) listener?.onEnd(this.#end.reason, this.#end.isBySignal);
    return nonce;
  }

  /** One frame. */
  send(payload: Uint8Array): void {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(payload.length);
    this.sendBare(length);
    this.sendBare(payload);
  }

  /** Bytes without a length. */
  sendBare(bytes: Uint8Array): void {
    this.#child.stdin?.write(bytes);
  }

  /** Drops what it complains of from now on. The pipe stays open: the runtime aborts where it cannot write to it. */
  hush(): void {
    this.#child.stderr?.removeAllListeners("data").resume();
  }

  /** Whether this process waits for the child (C2). */
  holdUp(isHolding: boolean): void {
    const child = this.#child;
    const streams = [child.stdin, child.stdout, child.stderr] as (Socket | null)[];
    if (isHolding) {
      child.ref();
      for (const stream of streams) stream?.ref();
    } else {
      child.unref();
      for (const stream of streams) stream?.unref();
    }
  }

  /** Ends the child's whole group, at once. */
  kill(): void {
    const { pid } = this.#child;
    if (pid === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // Its group is not there yet, or no more.
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
