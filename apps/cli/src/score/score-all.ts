/** Judges many episodes in this process and sums up their scores. */

import { type JudgedEpisode, type Panel, scoreEpisode, type Verdict } from "@hone/judge/scoring";

/** An episode with the caller's key for it. */
export interface Scorable<Key> {
  readonly key: Key;
  readonly episode: JudgedEpisode;
}

/** The scores of all episodes together. */
export interface ScoreSummary {
  readonly scored: number;
  /** Number of episodes for which a judge failed or that no judge applied to. */
  readonly failed: number;
  /** Number of episodes that are not scored, because their outcome says nothing about the agent. */
  readonly passed: number;
  /** Mean reward of the scored episodes; NaN if there are none. */
  readonly rewardMean: number;
  /** Number and mean of each judge's scores, in the order of their first score. */
  readonly judges: readonly { readonly judge: string; readonly count: number; readonly mean: number }[];
  /** Why judges failed, each reason once. */
  readonly reasons: readonly string[];
}

/** Episodes judged at once. Remote judges limit their requests themselves, so more would only wait. */
const CONCURRENCY = 64;
const MAX_REASONS = 5;

/**
 * Judges every episode, several at once.
 * @param onVerdict is called for each episode, in their order.
 */
export async function scoreAll<Key>(
  episodes: AsyncIterable<Scorable<Key>>,
  panel: Panel,
  signal: AbortSignal,
  onVerdict: (key: Key, verdict: Verdict) => void,
): Promise<ScoreSummary> {
  const waiting: { key: Key; verdict: Promise<Verdict> }[] = [];
  const totals = new Totals();
  const settle = async () => {
    const next = waiting.shift();
    if (next === undefined) return;
    const verdict = await next.verdict;
    signal.throwIfAborted();
    totals.add(verdict);
    onVerdict(next.key, verdict);
  };
  for await (const { key, episode } of episodes) {
    waiting.push({ key, verdict: scoreEpisode(episode, panel, { signal }) });
    if (waiting.length >= CONCURRENCY) await settle();
  }
  while (waiting.length > 0) await settle();
  return totals.summary();
}

class Totals {
  #scored = 0;
  #failed = 0;
  #passed = 0;
  #reward = 0;
  readonly #judges = new Map<string, { count: number; sum: number }>();
  readonly #reasons = new Set<string>();

  add(verdict: Verdict): void {
    if (verdict.kind === "passed") this.#passed++;
    if (verdict.kind === "failed") {
      this.#failed++;
      if (this.#reasons.size < MAX_REASONS) this.#reasons.add(verdict.reason);
    }
    if (verdict.kind !== "scored") return;
    this.#scored++;
    this.#reward += verdict.reward;
    for (const { judge, value } of verdict.scores) {
      const total = this.#judges.get(judge) ?? { count: 0, sum: 0 };
      this.#judges.set(judge, { count: total.count + 1, sum: total.sum + value });
    }
  }

  summary(): ScoreSummary {
    return {
      scored: this.#scored,
      failed: this.#failed,
      passed: this.#passed,
      rewardMean: this.#reward / this.#scored,
      judges: [...this.#judges].map(([judge, { count, sum }]) => ({ judge, count, mean: sum / count })),
      reasons: [...this.#reasons],
    };
  }
}
