/**
 * An environment whose steps take as much time as a slow tool or a remote simulator. With it one can find out how many
 * rollouts a machine holds, and which deadline suits them, before the real environment exists.
 *
 * Real tools have long tails: the time of a step may be drawn from a log-normal distribution. It is not drawn from the seed of the
 * episode, because rollouts of one group share that and do not wait for each other's tools.
 *
 * This time counts as the attempt's time, as that of any environment does. When the attempt ends early, so does the wait.
 */

import type {
  ActionFormat,
  Environment,
  EnvironmentDescription,
  EnvironmentFrame,
  EnvironmentReset,
  EnvironmentStep,
} from "@hone/agents";
import { delay, drawLogNormal, TerminalError } from "@hone/core";

/** No step takes longer. */
const MAX_DELAY_MS = 3_600_000;

/**
 * @param sigma standard deviation of the logarithm; 0 = every time is the mean.
 * @param random draws uniformly from [0, 1).
 * @returns times from a log-normal distribution with this mean, in milliseconds.
 */
export function logNormalMs(meanMs: number, sigma: number, random: () => number = Math.random): () => number {
  return () => Math.min(MAX_DELAY_MS, drawLogNormal(meanMs, sigma, random));
}

export class SlowEnvironment implements Environment {
  readonly #inner: Environment;
  readonly #drawDelayMs: () => number;
  readonly #closed = new AbortController();

  /** @param drawDelayMs gives the time that the next step takes in addition to what the inner environment needs. */
  constructor(inner: Environment, drawDelayMs: () => number) {
    this.#inner = inner;
    this.#drawDelayMs = drawDelayMs;
  }

  reset(seed: number): Promise<EnvironmentReset> | EnvironmentReset {
    return this.#inner.reset(seed);
  }

  /** @throws {TerminalError} when the environment is closed during the wait. */
  async step(action: string): Promise<EnvironmentStep> {
    await delay(this.#drawDelayMs(), { signal: this.#closed.signal });
    return this.#inner.step(action);
  }

  finish(): Promise<number> | number {
    return this.#inner.finish?.() ?? 0;
  }

  metrics(): Readonly<Record<string, number>> {
    return this.#inner.metrics();
  }

  describe(format?: ActionFormat): EnvironmentDescription {
    return this.#inner.describe?.(format) ?? {};
  }

  legalActions(): readonly string[] {
    return this.#inner.legalActions?.() ?? [];
  }

  expertAction(): string | undefined {
    return this.#inner.expertAction?.();
  }

  render(): Promise<EnvironmentFrame | undefined> | EnvironmentFrame | undefined {
    return this.#inner.render?.();
  }

  async close(): Promise<void> {
    this.#closed.abort(new TerminalError("ENVIRONMENT_CLOSED", "the environment was closed during a step"));
    await this.#inner.close?.();
  }
}
