/**
 * Keeps track of the weights that the server holds, and replaces them: rules S1 to S3 of {@link ServerEngine}.
 *
 * The asynchronous methods are called one after the other.
 */

import { PolicyLoadError, ServerGoneError } from "../domain/errors.ts";
import type { PolicySource } from "../domain/inference-engine.ts";
import type { EngineServer, ServerFacts } from "./engine-server.ts";
import type { ServerPolicy } from "./read-server-policy.ts";
import type { ServerKeeper } from "./server-keeper.ts";

export interface HeldWeightsOptions {
  readonly server: EngineServer;
  readonly keeper: Pick<ServerKeeper, "look" | "remember" | "signal" | "state">;
  /** Cuts off the generations that may move to this version; resolves when nothing runs at the server any more (S2). */
  readonly drain: (version: number) => Promise<void>;
  readonly onChange: (change: WeightsChange) => void;
}

/** Whether the server got weights again that it had lost. */
export type WeightsChange =
  | { readonly kind: "restored"; readonly source: PolicySource }
  | { readonly kind: "not restored"; readonly source: PolicySource; readonly error: unknown };

/** A change of weights. Generations run until they have ended or moved; none runs while the server loads. */
export interface Change {
  readonly version: number;
  readonly isLoading: boolean;
  readonly done: Promise<void>;
}

export class HeldWeights {
  readonly #options: HeldWeightsOptions;
  #held: ServerPolicy | undefined;
  #missing: ServerPolicy | undefined;
  /** Whether the server may hold other whole weights than those that it was started with. */
  #isStartReplaced = true;
  #change: (Change & { isLoading: boolean }) | undefined;

  constructor(options: HeldWeightsOptions) {
    this.#options = options;
  }

  /** The weights that the server certainly holds. */
  get held(): ServerPolicy | undefined {
    return this.#held;
  }

  /** The weights that it should hold but does not, as it was away or a load failed. */
  get missing(): ServerPolicy | undefined {
    return this.#missing;
  }

  get change(): Change | undefined {
    return this.#change;
  }

  /** Why these weights cannot be loaded now, as a clause for a message; undefined if they can. */
  refusalOf({ source, weights }: ServerPolicy): string | undefined {
    const present = (this.#held ?? this.#missing)?.source.model ?? source.model;
    if (present !== source.model) return `the server holds ${present}, and can hold one model at a time`;
    if (weights.kind === "whole" || !this.#isStartReplaced) return undefined;
    return "adapters need the weights that the server was started with, and it has other ones until it restarts";
  }

  /**
   * S1, S2
   * @throws {PolicyLoadError} and then the server keeps the former weights, or gets them again after its next check.
   */
  async replace(next: ServerPolicy): Promise<void> {
    const { version, model } = next.source;
    const done = Promise.withResolvers<void>();
    const change = { version, isLoading: false, done: done.promise };
    this.#change = change;
    const before = this.#held;
    try {
      await this.#options.drain(version);
      change.isLoading = true;
      await this.#give(next);
      this.#missing = undefined;
    } catch (cause) {
      if (change.isLoading && next.weights.kind === "whole") {
        // The server may hold a part of them.
        this.#held = undefined;
        this.#missing = before ?? this.#missing;
        await this.restore();
      }
      if (cause instanceof ServerGoneError) this.#options.keeper.look();
      throw new PolicyLoadError(`The server did not load version ${version} of ${model}`, { cause });
    } finally {
      this.#change = undefined;
      done.resolve();
    }
    if (before !== undefined && before.weights.label !== next.weights.label) await this.#forget(before);
  }

  /** S3: the server has answered. */
  async met({ hasStartWeights }: Pick<ServerFacts, "hasStartWeights">): Promise<void> {
    this.#isStartReplaced = !hasStartWeights;
    await this.restore();
  }

  /** S3: the server is gone, and its weights with it. */
  lost(): void {
    this.#missing = this.#held ?? this.#missing;
    this.#held = undefined;
  }

  /** Gives the server the weights that it should hold, if it does not. */
  async restore(): Promise<void> {
    const { keeper, onChange } = this.#options;
    const missing = this.#missing;
    if (missing === undefined || keeper.state.kind !== "ready" || keeper.signal.aborted) return;
    try {
      await this.#give(missing);
      this.#missing = undefined;
      onChange({ kind: "restored", source: missing.source });
    } catch (error) {
      onChange({ kind: "not restored", source: missing.source, error });
    }
  }

  /** Removes a model that is no longer needed. Its generations have ended. */
  async drop(model: string): Promise<void> {
    const policy = this.#held ?? this.#missing;
    if (policy?.source.model !== model) return;
    this.#held = undefined;
    this.#missing = undefined;
    if (this.#options.keeper.state.kind === "ready") await this.#forget(policy);
  }

  async #give(policy: ServerPolicy): Promise<void> {
    const { server, keeper } = this.#options;
    if (policy.weights.kind === "whole") this.#isStartReplaced = true;
    await server.load(policy.weights, keeper.signal);
    await keeper.remember();
    this.#held = policy;
  }

  /** Frees the server's memory of weights that are no longer needed. */
  async #forget({ weights }: ServerPolicy): Promise<void> {
    const { server, keeper } = this.#options;
    try {
      await server.drop(weights, keeper.signal);
    } catch {
      keeper.look();
    }
  }
}
