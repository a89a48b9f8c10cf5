/**
 * Loads and unloads the engine's models as the runs need them.
 *
 * K1: one load at a time per model; a version that is superseded while another one loads is skipped.
 * K2: a load that fails is tried again, with growing pauses, until it succeeds or another version is wanted.
 * K3: each load of a model wakes those who wait for the model, and they check themselves whether it is the one they need.
 */

import { pause } from "@hone/core";
import { Attr, contextOfTraceparent, SpanKind, SpanName, withSpan } from "@hone/telemetry";
import type { InferenceEngine, LoadProgress, PolicySource } from "./inference-engine.ts";

export interface PolicyKeeperOptions {
  readonly engine: InferenceEngine;
  /** Called when a load begins, progresses, succeeds or fails, and after an unload. */
  readonly onChange: (change: PolicyChange) => void;
}

export type PolicyChange =
  | { readonly kind: "loading"; readonly source: PolicySource }
  | { readonly kind: "progress"; readonly source: PolicySource; readonly progress: LoadProgress }
  | { readonly kind: "loaded"; readonly source: PolicySource; readonly tookMs: number }
  | {
      readonly kind: "failed";
      readonly source: PolicySource;
      readonly error: unknown;
      readonly tookMs: number;
    }
  | { readonly kind: "unloaded"; readonly model: string };

/** Pauses between attempts to load. A file on a shared file system may appear later than the message that announces it. */
const MIN_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;

/** A policy that the engine has loaded. */
export interface LoadedPolicy {
  readonly source: PolicySource;
  /** Unix milliseconds. */
  readonly loadedAtMs: number;
}

interface Keeping {
  wanted: PolicySource | undefined;
  loaded: PolicySource | undefined;
  loadedAtMs: number;
  /** Ends the pause before the next attempt when another version is wanted. */
  changed: AbortController;
  working: Promise<void> | undefined;
}

export class PolicyKeeper {
  readonly #engine: InferenceEngine;
  readonly #onChange: (change: PolicyChange) => void;
  readonly #models = new Map<string, Keeping>();
  readonly #waiting = new Map<string, Set<() => void>>();
  #isClosed = false;

  constructor(options: PolicyKeeperOptions) {
    this.#engine = options.engine;
    this.#onChange = options.onChange;
  }

  /** The loaded version of every model. */
  loaded(): LoadedPolicy[] {
    return Array.from(this.#models.values(), ({ loaded, loadedAtMs }) =>
      loaded === undefined ? [] : [{ source: loaded, loadedAtMs }],
    ).flat();
  }

  /** The version of a model that is being loaded, if any. */
  loading(model: string): PolicySource | undefined {
    const keeping = this.#models.get(model);
    return keeping === undefined || isSame(keeping.wanted, keeping.loaded) ? undefined : keeping.wanted;
  }

  /** Sets the version that the model should have; returns at once. */
  want(source: PolicySource): void {
    this.#set(source.model, source);
  }

  /** Unloads a model that is no longer needed. */
  drop(model: string): void {
    if (this.#models.has(model)) this.#set(model, undefined);
  }

  /** Resolves with the model's next load, or after `ms` milliseconds, or when the signal aborts. */
  async nextLoad(model: string, ms: number, signal: AbortSignal | undefined): Promise<void> {
    const waiting = this.#waiting.get(model) ?? new Set();
    this.#waiting.set(model, waiting);
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    waiting.add(resolve);
    const onAbort = () => resolve();
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted) onAbort();
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      waiting.delete(resolve);
      if (waiting.size === 0) this.#waiting.delete(model);
    }
  }

  /** Starts no new load and waits for those that run. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const keeping of this.#models.values()) keeping.changed.abort();
    await Promise.all(Array.from(this.#models.values(), (keeping) => keeping.working));
  }

  #set(model: string, wanted: PolicySource | undefined): void {
    const keeping = this.#models.get(model) ?? {
      wanted: undefined,
      loaded: undefined,
      loadedAtMs: 0,
      changed: new AbortController(),
      working: undefined,
    };
    this.#models.set(model, keeping);
    if (isSame(keeping.wanted, wanted)) return;
    keeping.wanted = wanted;
    keeping.changed.abort();
    keeping.changed = new AbortController();
    keeping.working ??= this.#work(model, keeping);
  }

  /** K1 */
  async #work(model: string, keeping: Keeping): Promise<void> {
    let retryMs = MIN_RETRY_MS;
    while (!this.#isClosed && !isSame(keeping.wanted, keeping.loaded)) {
      const { wanted, changed } = keeping;
      if (wanted === undefined) {
        await this.#engine.unload(model);
        keeping.loaded = undefined;
        this.#onChange({ kind: "unloaded", model });
        continue;
      }
      if (await this.#load(wanted)) {
        keeping.loaded = wanted;
        keeping.loadedAtMs = Date.now();
        retryMs = MIN_RETRY_MS;
      } else {
        // K2
        await pause(retryMs, changed.signal);
        retryMs = changed.signal.aborted ? MIN_RETRY_MS : Math.min(MAX_RETRY_MS, retryMs * 2);
      }
    }
    keeping.working = undefined;
    if (keeping.wanted === undefined && !this.#isClosed) this.#models.delete(model);
  }

  async #load(source: PolicySource): Promise<boolean> {
    this.#onChange({ kind: "loading", source });
    const startedAt = performance.now();
    try {
      const onProgress = (progress: LoadProgress) => this.#onChange({ kind: "progress", source, progress });
      await traceLoad(source, () => this.#engine.loadPolicy(source, { onProgress }));
    } catch (error) {
      this.#onChange({ kind: "failed", source, error, tookMs: performance.now() - startedAt });
      return false;
    }
    this.#onChange({ kind: "loaded", source, tookMs: performance.now() - startedAt });
    for (const wake of this.#waiting.get(source.model) ?? []) wake(); // K3
    return true;
  }
}

/** Runs a load in a span, below the one that published the version. */
function traceLoad({ model, version, publishedIn }: PolicySource, load: () => Promise<void>): Promise<void> {
  return withSpan(
    SpanName.engineLoad,
    {
      parent: publishedIn === undefined ? "root" : contextOfTraceparent(publishedIn),
      kind: SpanKind.CONSUMER,
      attributes: { [Attr.genAiRequestModel]: model, [Attr.policyVersion]: version },
    },
    load,
  );
}

function isSame(a: PolicySource | undefined, b: PolicySource | undefined): boolean {
  return (
    a?.version === b?.version &&
    a?.folder === b?.folder &&
    a?.digest === b?.digest &&
    a?.quantization === b?.quantization
  );
}
