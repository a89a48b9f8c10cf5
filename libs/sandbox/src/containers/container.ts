/**
 * One running container, in which commands of a model run.
 *
 * K1: a command has ended when its own process has: what it leaves in the background goes on, with what it holds open.
 * K2: a command that takes too long is ended together with everything else that its user runs in the container, because the
 *     API cannot end one command. Where even that fails, the container is lost.
 * K3: what commands can bring about is a result and never a failure: a container that ended for lack of memory, and one in which
 *     no command can be started any more, such as after a fork bomb. The container is lost then. If it is gone, or ended
 *     otherwise, which no command can bring about, the runtime has failed.
 */

import { DeadlineError, deadline, pause } from "@hone/core";
import { ContainerRuntimeError } from "../errors.ts";
import type { EngineApi } from "./engine-api.ts";
import { type CommandOutput, OutputCollector } from "./output-collector.ts";

/** A command and its limits. */
export interface CommandOptions {
  /** The program with its arguments. */
  readonly command: readonly string[];
  readonly timeMs: number;
  /** Of the output the first and the last half of this are kept. */
  readonly maxOutputBytes: number;
  readonly signal: AbortSignal;
}

/** How a command ended. */
export type CommandEnd =
  | { readonly kind: "ended"; readonly exitCode: number; readonly output: CommandOutput }
  /** `isLost`: the container had to be given up. */
  | { readonly kind: "timed_out"; readonly isLost: boolean; readonly output: CommandOutput }
  /** The command, or what it left behind, made the container end. */
  | { readonly kind: "lost"; readonly reason: string };

/** Pauses between the looks whether a command has ended. */
const MIN_POLL_MS = 25;
const MAX_POLL_MS = 500;
/** Output that is on its way when the process has ended. */
const FLUSH_MS = 250;
const KILL_MS = 10_000;
const END_TRIES = 6;
const MAX_REASON_CHARACTERS = 300;
/** Beyond this, nothing more is read of the output of one command. */
const MAX_STREAM_BYTES = 64 * 1024 * 1024;
const END_ALL = ["/bin/sh", "-c", "kill -KILL -1"];
const OK = 200;
const CREATED = 201;
const NO_CONTENT = 204;
const BAD_REQUEST = 400;
const NOT_FOUND = 404;
const CONFLICT = 409;
const FAILED = 500;

export class Container {
  readonly #api: EngineApi;
  readonly #id: string;
  readonly #user: string;

  /** @param user as commands run. */
  constructor(api: EngineApi, id: string, user: string) {
    this.#api = api;
    this.#id = id;
    this.#user = user;
  }

  /** @throws {ContainerRuntimeError} when the runtime fails. @throws the signal's reason when it aborts. */
  async run(options: CommandOptions): Promise<CommandEnd> {
    return this.#run(options, this.#user, (id) => this.#endAll(id, options.signal));
  }

  /** Runs a command of Hone's own as the container's root, which has no capability either. @throws as {@link run}. */
  async runAsRoot(options: CommandOptions): Promise<CommandEnd> {
    return this.#run(options, "0:0");
  }

  /** Removes the container and what is in it; does nothing where it is gone. @throws {ContainerRuntimeError} */
  async remove(): Promise<void> {
    const path = `/containers/${this.#id}?force=true&v=true`;
    // A conflict: somebody is removing it already.
    await this.#api.call({ method: "DELETE", path, allowed: [OK, NO_CONTENT, NOT_FOUND, CONFLICT] });
  }

  /** @param endAll ends a command that takes too long, and says whether it has (K2). */
  async #run(
    options: CommandOptions,
    user: string,
    endAll: (execId: string) => Promise<boolean> = async () => false,
  ): Promise<CommandEnd> {
    const { command, timeMs, maxOutputBytes, signal } = options;
    const collector = new OutputCollector(maxOutputBytes);
    const created = await this.#api.call({
      method: "POST",
      path: `/containers/${this.#id}/exec`,
      body: { AttachStdout: true, AttachStderr: true, Tty: false, Cmd: command, User: user },
      // Podman answers 500 where the container does not run.
      allowed: [CREATED, NOT_FOUND, CONFLICT, FAILED],
      signal,
    });
    if (created.status !== CREATED) return this.#lost(created.body, signal); // K3
    const id = textAt(created.body, "Id");
    const stop = new AbortController();
    try {
      const exitCode = await deadline(
        "a command in a container",
        timeMs,
        (inTime) => this.#follow(id, collector, AbortSignal.any([inTime, stop.signal])),
        { signal },
      );
      return exitCode === undefined
        ? await this.#lost(undefined, signal)
        : { kind: "ended", exitCode, output: collector.finish() };
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof DeadlineError)) throw error;
      const hasEnded = await endAll(id); // K2
      return { kind: "timed_out", isLost: !hasEnded, output: collector.finish() };
    } finally {
      stop.abort();
    }
  }

  /** Starts a command and follows it to its end. @returns its exit code; undefined = the container is gone. */
  async #follow(id: string, collector: OutputCollector, signal: AbortSignal): Promise<number | undefined> {
    const stream = await this.#api.open({
      method: "POST",
      path: `/exec/${id}/start`,
      body: { Detach: false, Tty: false },
      allowed: [OK, BAD_REQUEST, NOT_FOUND, CONFLICT, FAILED],
      signal,
    });
    if (stream.statusCode !== OK) {
      stream.destroy();
      return undefined;
    }
    const ended = new Promise<void>((resolve) => {
      let numBytes = 0;
      stream.on("data", (chunk: Buffer) => {
        collector.push(chunk);
        numBytes += chunk.length;
        // A command that writes without end blocks here until its time is over.
        if (numBytes > MAX_STREAM_BYTES) stream.pause();
      });
      for (const event of ["end", "close", "error"]) stream.once(event, () => resolve());
    });
    let isStreamOver = false;
    void ended.then(() => {
      isStreamOver = true;
    });
    try {
      for (let pauseMs = MIN_POLL_MS; ; pauseMs = Math.min(MAX_POLL_MS, 2 * pauseMs)) {
        await Promise.race([isStreamOver ? pause(pauseMs, signal) : ended, pause(pauseMs, signal)]);
        signal.throwIfAborted();
        const exitCode = await this.#exitCodeOf(id, signal);
        if (exitCode === "runs") continue;
        if (exitCode !== undefined && !isStreamOver) await Promise.race([ended, pause(FLUSH_MS, signal)]); // K1
        return exitCode;
      }
    } finally {
      stream.destroy();
    }
  }

  /** @returns undefined where the container is gone. */
  async #exitCodeOf(id: string, signal: AbortSignal): Promise<number | "runs" | undefined> {
    const { status, body } = await this.#api.call({
      method: "GET",
      path: `/exec/${id}/json`,
      allowed: [OK, NOT_FOUND, CONFLICT],
      signal,
    });
    if (status !== OK) return undefined;
    if (valueAt(body, "Running") === true) return "runs";
    const exitCode = valueAt(body, "ExitCode");
    return typeof exitCode === "number" ? exitCode : "runs";
  }

  /** K2. @returns whether the command has ended. */
  async #endAll(id: string, signal: AbortSignal): Promise<boolean> {
    const killed = await this.#run(
      { command: END_ALL, timeMs: KILL_MS, maxOutputBytes: 100, signal },
      // As root it would not end processes of others: root has no capability here.
      this.#user,
    ).catch((error: unknown) => {
      signal.throwIfAborted();
      // A container that is full of processes has no room for another one.
      if (error instanceof ContainerRuntimeError) return undefined;
      throw error;
    });
    if (killed === undefined || killed.kind === "lost") return false;
    // The runtime takes a moment to notice it.
    for (let tries = 0; tries < END_TRIES; tries++) {
      if ((await this.#exitCodeOf(id, signal)) !== "runs") return true;
      await pause(MAX_POLL_MS, signal);
    }
    return false;
  }

  /** K3. @param refusal what the runtime answered in place of running the command. */
  async #lost(refusal: unknown, signal: AbortSignal): Promise<CommandEnd> {
    const { status, body } = await this.#api.call({
      method: "GET",
      path: `/containers/${this.#id}/json`,
      allowed: [OK, NOT_FOUND],
      signal,
    });
    const state = valueAt(body, "State");
    if (status === NOT_FOUND) throw this.#api.failure("a container is gone that nobody here removed");
    if (valueAt(state, "Running") === true) {
      const told = valueAt(refusal, "message");
      const why = typeof told === "string" ? `: ${told.slice(0, MAX_REASON_CHARACTERS)}` : "";
      return { kind: "lost", reason: `no command could be started in it any more${why}` };
    }
    if (valueAt(state, "OOMKilled") === true)
      return { kind: "lost", reason: "it used more memory than it may" };
    const found = String(valueAt(state, "Status"));
    throw this.#api.failure(
      `a container does not run any more (its state is "${found}"); its time may be over (lifeMs)`,
    );
  }
}

function valueAt(body: unknown, key: string): unknown {
  return typeof body === "object" && body !== null ? Reflect.get(body, key) : undefined;
}

/** @throws {ContainerRuntimeError} when the answer has no such text. */
export function textAt(body: unknown, key: string): string {
  const value = valueAt(body, key);
  if (typeof value === "string" && value !== "") return value;
  throw new ContainerRuntimeError("the container runtime", `its answer has no ${key}`);
}
