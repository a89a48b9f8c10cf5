/**
 * The deadlines of a run's attempts where the run file derives them from what attempts have taken (`rollout.deadline`).
 *
 * D1: The figures of a step hold a quantile of the times of its attempts, and how many they were. The deadline of the jobs that a
 *     step asks for is `factor` times the largest quantile of the last steps before it that have at least `window` attempts
 *     together. It is never above deadlineMs; while there are fewer attempts, it is deadlineMs.
 * D2: It depends on the figures of committed steps alone, so the next owner of the run gives the same jobs the same deadline.
 * D3: An attempt that its deadline ended counts with the time that it had. So where a deadline ends more than the share that the
 *     quantile leaves, the quantile is that deadline, and the next deadline is longer by the factor.
 * D4: Evaluations and the warm start keep deadlineMs.
 */

import { MIN_DEADLINE_MS, type RunConfig } from "@hone/config";
import { Outcome } from "@hone/core";
import { type MetricSet, Reduction } from "@hone/rl";
import type { RunReporter } from "../report/run-reporter.ts";
import type { RunRecord } from "../run/run-record.ts";
import type { RunLedger } from "../step/ledger.ts";
import { stepFigures } from "../step/step-figures.ts";
import type { ScoredRollout } from "./scored-rollout.ts";

/** The figures of a step; those that the deadlines of later steps depend on are read again (D2). */
const Figure = {
  /** Deadline of the jobs that the step asked for. */
  deadlineMs: "deadline/ms",
  /** Number of its rollouts that such a deadline ended before deadlineMs would have. */
  ended: "deadline/ended",
  /** The quantile of what the attempts of the step's rollouts took. */
  quantileMs: "deadline/quantile_ms",
  /** Number of attempts that the quantile is of. */
  seen: "deadline/seen",
} as const;

/** How attempts end whose time says how long attempts take; failures end at any time. */
const TIMED_OUTCOMES: ReadonlySet<Outcome> = new Set([
  Outcome.completed,
  Outcome.truncated,
  Outcome.timedOut,
]);

/** What a step tells about the times of its attempts. */
interface SeenTimes {
  readonly count: number;
  readonly quantileMs: number;
}

export interface RolloutDeadlinesDeps {
  readonly run: Pick<RunRecord, "runId" | "config">;
  readonly ledger: Pick<RunLedger, "step">;
  readonly reporter: Pick<RunReporter, "untilAvailable">;
}

export class RolloutDeadlines {
  readonly #deps: RolloutDeadlinesDeps;
  readonly #settings: RunConfig["rollout"]["deadline"];
  readonly #seen = new Map<number, SeenTimes>();
  readonly #deadlines = new Map<number, number>();

  constructor(deps: RolloutDeadlinesDeps) {
    this.#deps = deps;
    this.#settings = deps.run.config.rollout.deadline;
  }

  /** @returns the deadline of an attempt at a job that a step asks for, milliseconds; undefined where the run file derives none (D1). */
  async of(step: number): Promise<number | undefined> {
    if (this.#settings === undefined) return undefined;
    const known = this.#deadlines.get(step);
    if (known !== undefined) return known;
    const { factor, window } = this.#settings;
    const { deadlineMs } = this.#deps.run.config.rollout;
    let count = 0;
    let quantileMs = 0;
    for (let version = step - 1; version > 0 && count < window; version--) {
      const seen = await this.#timesOf(version);
      count += seen.count;
      quantileMs = Math.max(quantileMs, seen.quantileMs);
    }
    const derivedMs = Math.max(MIN_DEADLINE_MS, Math.ceil(factor * quantileMs));
    const deadline = count < window ? deadlineMs : Math.min(deadlineMs, derivedMs);
    this.#deadlines.set(step, deadline);
    return deadline;
  }

  /** Adds the figures of a step. @param rollouts those that the step played; other steps may have asked for them. */
  async addFigures(metrics: MetricSet, step: number, rollouts: readonly ScoredRollout[]): Promise<void> {
    const deadlineMs = await this.of(step);
    if (this.#settings === undefined || deadlineMs === undefined) return;
    metrics.add(Figure.deadlineMs, Reduction.last, deadlineMs);
    metrics.add(Figure.ended, Reduction.sum, 0);
    for (const { outcome, slot } of rollouts) {
      if (outcome !== Outcome.timedOut) continue;
      const own = (await this.of(slot.step)) ?? deadlineMs;
      metrics.add(Figure.ended, Reduction.sum, Number(own < this.#deps.run.config.rollout.deadlineMs));
    }
    const times = rollouts
      .filter(({ outcome, durationMs }) => TIMED_OUTCOMES.has(outcome) && durationMs > 0)
      .map(({ durationMs }) => durationMs)
      .sort((a, b) => a - b); // D3
    metrics.add(Figure.seen, Reduction.sum, times.length);
    const rank = Math.ceil(this.#settings.quantile * times.length);
    if (rank > 0) metrics.add(Figure.quantileMs, Reduction.last, times[rank - 1]!);
  }

  /** @param version of a committed step (D2). */
  async #timesOf(version: number): Promise<SeenTimes> {
    const known = this.#seen.get(version);
    if (known !== undefined) return known;
    const figures = await stepFigures(this.#deps, version);
    const { [Figure.seen]: count = 0, [Figure.quantileMs]: quantileMs = 0 } = figures;
    this.#seen.set(version, { count, quantileMs });
    return { count, quantileMs };
  }
}
