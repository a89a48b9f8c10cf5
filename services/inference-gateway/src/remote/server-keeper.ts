/** Watches an inference server: waits for it, inspects it, and notices when another process has replaced it. */

import { DeadlineError, describeError, pause } from "@hone/core";
import { ServerBusyError, ServerGoneError } from "../domain/errors.ts";
import type { EngineServer, ServerFacts } from "./engine-server.ts";

export type ServerState =
  | { readonly kind: "away"; readonly reason: string }
  | { readonly kind: "ready"; readonly facts: ServerFacts };

export interface ServerKeeperOptions {
  readonly server: EngineServer;
  /** Time between two checks. */
  readonly everyMs: number;
  /** Runs a check when nothing else is done with the server. */
  readonly inTurn: (work: () => Promise<void>) => Promise<void>;
  /** Called when the server is ready, for the first time or again; it may have lost its weights. */
  readonly onReady: (facts: ServerFacts) => Promise<void>;
  /** Called when the server is gone, or another process has replaced it. */
  readonly onAway: (reason: string) => void;
  /** Called after a check that found no change. */
  readonly onSteady: () => Promise<void>;
}

/** A server that does not answer this many checks in a row is gone; one that refuses connections is gone at once. */
const MAX_SILENT_LOOKS = 3;
/** Longest time for which a server that answers, but whose engine does not, counts as in a long step (a slow CPU with many sequences). */
const MAX_BUSY_MS = 900_000;

export class ServerKeeper {
  readonly #options: ServerKeeperOptions;
  readonly #closing = new AbortController();
  #state: ServerState = { kind: "away", reason: "not looked at yet" };
  #facts: ServerFacts | undefined;
  #identity = "";
  #silentLooks = 0;
  /** Monotonic time since which the engine has not answered; undefined = it answers. */
  #busySince: number | undefined;
  #nudge = new AbortController();
  #changed = Promise.withResolvers<void>();
  readonly #watching: Promise<void>;

  constructor(options: ServerKeeperOptions) {
    this.#options = options;
    this.#watching = this.#watch();
  }

  get state(): ServerState {
    return this.#state;
  }

  /** The facts of the server when it was last ready; undefined before the first time. */
  get facts(): ServerFacts | undefined {
    return this.#facts;
  }

  /** Aborts when this is closed. */
  get signal(): AbortSignal {
    return this.#closing.signal;
  }

  /** Checks the server now, as something may have changed. */
  look(): void {
    this.#nudge.abort();
  }

  /** Remembers the server's present identity as the right one, until the next change. @throws {ServerGoneError} */
  async remember(): Promise<void> {
    this.#identity = await this.#options.server.identify(this.#closing.signal);
  }

  /** Resolves when the server is ready, after `ms` milliseconds, or when this is closed. */
  async untilReady(ms: number): Promise<void> {
    const until = AbortSignal.any([AbortSignal.timeout(ms), this.#closing.signal]);
    while (this.#state.kind !== "ready" && !until.aborted) {
      const waited = new AbortController();
      const ended = AbortSignal.any([until, waited.signal]);
      void this.#changed.promise.then(() => waited.abort());
      await pause(ms, ended);
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#watching;
  }

  async #watch(): Promise<void> {
    const { everyMs, inTurn } = this.#options;
    while (!this.#closing.signal.aborted) {
      this.#nudge = new AbortController();
      await inTurn(() => this.#checkOrConnect());
      await pause(everyMs, AbortSignal.any([this.#closing.signal, this.#nudge.signal]));
    }
  }

  async #checkOrConnect(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    try {
      if (this.#state.kind === "ready") await this.#check();
      // Also right after it was lost, as it may be back already.
      if (this.#state.kind === "away") await this.#connect();
    } catch (error) {
      if (!this.#closing.signal.aborted) this.#markAway(describeError(error));
    }
  }

  async #check(): Promise<void> {
    const { server, onSteady } = this.#options;
    try {
      const identity = await server.identify(this.#closing.signal);
      this.#answered();
      if (identity !== this.#identity) return this.#markAway(`another process, with weights "${identity}"`);
    } catch (error) {
      if (error instanceof ServerBusyError && this.#mayBeBusy()) return;
      if (error instanceof DeadlineError && ++this.#silentLooks < MAX_SILENT_LOOKS) return;
      if (![DeadlineError, ServerBusyError, ServerGoneError].some((known) => error instanceof known)) {
        throw error;
      }
      return this.#markAway(describeError(error));
    }
    await onSteady();
  }

  async #connect(): Promise<void> {
    const { server, onReady } = this.#options;
    const facts = await server.inspect(this.#closing.signal);
    await this.remember();
    this.#facts = facts;
    this.#answered();
    this.#set({ kind: "ready", facts });
    await onReady(facts);
  }

  #answered(): void {
    this.#silentLooks = 0;
    this.#busySince = undefined;
  }

  #mayBeBusy(): boolean {
    this.#silentLooks = 0;
    this.#busySince ??= performance.now();
    return performance.now() - this.#busySince < MAX_BUSY_MS;
  }

  #markAway(reason: string): void {
    const wasReady = this.#state.kind === "ready";
    this.#set({ kind: "away", reason });
    if (wasReady) this.#options.onAway(reason);
  }

  #set(state: ServerState): void {
    this.#state = state;
    const changed = this.#changed;
    this.#changed = Promise.withResolvers<void>();
    changed.resolve();
  }
}
