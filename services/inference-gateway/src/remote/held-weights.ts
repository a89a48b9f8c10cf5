/**
 * Which weights the server holds, and how others come in their place: rules S1 to S3 of {@link ServerEngine}.
 *
 * Every method that waits is called in turn, one after the other.
 */

import { PolicyLoadError, ServerGoneError } from "../domain/errors.ts";
import type { PolicySource } from "../domain/inference-engine.ts";
import type { EngineServer, ServerFacts } from "./engine-server.ts";
import type { ServerPolicy } from "./read-server-policy.ts";
import type { ServerKeeper } from "./server-keeper.ts";

export interface HeldWeightsOptions {
  readonly server: EngineServer;
  readonly keeper: Pick<ServerKeeper, "look" | "remember" | "signal" | "state">;
  /** Cuts off what may move to this version; resolves when nothing runs at the server any more (S2). */
  readonly drain: (version: number) => Promise<void>;
  readonly onChange: (change: WeightsChange) => void;
}

/** What became of weights that the server had lost. */
export type WeightsChange =
  | { readonly kind: "restored"; readonly source: PolicySource }
  | { readonly kind: "not restored"; readonly source: PolicySource; readonly error: unknown };

/** A change of weights. Generations run on until they have ended or moved; none runs while the server loads. */
export interface Change {
  readonly version: number;
  readonly isLoading: boolean;
  readonly done: Promise<void>;
}

export class HeldWeights {
  readonly #options: HeldWeightsOptions;
  #held: ServerPolicy | undefined;
  #missing: ServerPolicy | undefined;
  /** Whether other whole weights are there, or may be, than those that the server was started with. */
  #isStartReplaced = true;
  #change: (Change & { isLoading: boolean }) | undefined;

  constructor(options: HeldWeightsOptions) {
    this.#options = options;
  }

  /** What the server holds for sure. */
  get held(): ServerPolicy | undefined {
    return this.#held;
  }

  /** What it is to hold and does not, as it was away or a load broke off. */
  get missing(): ServerPolicy | undefined {
    return this.#missing;
  }

  get change(): Change | undefined {
    return this.#change;
  }

  /** Why these cannot come now, for people; undefined where they can. */
  refusalOf({ source, weights }: ServerPolicy): string | undefined {
    const present = (this.#held ?? this.#missing)?.source.model ?? source.model;
    if (present !== source.model)
      return `an inference server has one model at a time: current value is ${present}`;
    if (weights.kind === "whole" || !this.#isStartReplaced) return undefined;
    return "adapters need the weights that the server was started with: current value is other ones, until it restarts";
  }

  /**
   * S1, S2
   * @throws {PolicyLoadError} what was there is there still, or is given again at the next look.
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
        // They may be there in part.
        this.#held = undefined;
        this.#missing = before ?? this.#missing;
        await this.restore();
      }
      if (cause instanceof ServerGoneError) this.#options.keeper.look();
      throw new PolicyLoadError(`Cannot load version ${version} of ${model} as its server must take it`, {
        cause,
      });
    } finally {
      this.#change = undefined;
      done.resolve();
    }
    if (before !== undefined && before.weights.label !== next.weights.label) await this.#forget(before);
  }

  /** S3: there is a server. */
  async met({ hasStartWeights }: Pick<ServerFacts, "hasStartWeights">): Promise<void> {
    this.#isStartReplaced = !hasStartWeights;
    await this.restore();
  }

  /** S3: the server is gone with what it held. */
  lost(): void {
    this.#missing = this.#held ?? this.#missing;
    this.#held = undefined;
  }

  /** Gives the server what it is to hold; does nothing where it does. */
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

  /** A model is needed no more; its generations are at their end. */
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

  /** What is needed no more is only in the way. */
  async #forget({ weights }: ServerPolicy): Promise<void> {
    const { server, keeper } = this.#options;
    try {
      await server.drop(weights, keeper.signal);
    } catch {
      keeper.look();
    }
  }
}
