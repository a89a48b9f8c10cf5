/**
 * An environment whose steps take as much time as a slow tool or a remote simulator. With it one can find out how many
 * rollouts a machine holds, and which deadline suits them, before the real environment exists.
 *
 * This time counts as the attempt's time, as that of any environment does. When the attempt ends early, so does the wait.
 */

import type { Environment, EnvironmentReset, EnvironmentStep } from "@hone/agents";
import { delay, TerminalError } from "@hone/core";

export class SlowEnvironment implements Environment {
  readonly #inner: Environment;
  readonly #stepDelayMs: number;
  readonly #closed = new AbortController();

  /** @param stepDelayMs time that each step takes in addition to what the inner environment needs. */
  constructor(inner: Environment, stepDelayMs: number) {
    this.#inner = inner;
    this.#stepDelayMs = stepDelayMs;
  }

  reset(seed: number): Promise<EnvironmentReset> | EnvironmentReset {
    return this.#inner.reset(seed);
  }

  /** @throws {TerminalError} when the environment is closed during the wait. */
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
    this.#closed.abort(new TerminalError("ENVIRONMENT_CLOSED", "the environment was closed during a step"));
    await this.#inner.close?.();
  }
}
