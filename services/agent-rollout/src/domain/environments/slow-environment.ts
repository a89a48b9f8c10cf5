/**
 * An environment whose steps take time, as a slow tool or a simulator elsewhere would take it: for finding out how many
 * rollouts a machine holds, and how a deadline suits them, before the real thing is there.
 *
 * The time counts as the attempt's own, as any environment's does. The attempt that ends early ends its wait with it.
 */

import type { Environment, EnvironmentReset, EnvironmentStep } from "@hone/agents";
import { delay, TerminalError } from "@hone/core";

export class SlowEnvironment implements Environment {
  readonly #inner: Environment;
  readonly #stepDelayMs: number;
  readonly #closed = new AbortController();

  /** @param stepDelayMs how long each step takes beside what the inner environment needs. */
  constructor(inner: Environment, stepDelayMs: number) {
    this.#inner = inner;
    this.#stepDelayMs = stepDelayMs;
  }

  reset(seed: number): Promise<EnvironmentReset> | EnvironmentReset {
    return this.#inner.reset(seed);
  }

  /** @throws {TerminalError} when it is closed meanwhile. */
  async step(answer: string): Promise<EnvironmentStep> {
    await delay(this.#stepDelayMs, { signal: this.#closed.signal });
    return this.#inner.step(answer);
  }

  metrics(): Readonly<Record<string, number>> {
    return this.#inner.metrics();
  }

  legalAnswers(): readonly string[] {
    return this.#inner.legalAnswers?.() ?? [];
  }

  async close(): Promise<void> {
    this.#closed.abort(
      new TerminalError(
        "ENVIRONMENT_CLOSED",
        "Cannot step as the environment is closed: current value is closed",
      ),
    );
    await this.#inner.close?.();
  }
}
