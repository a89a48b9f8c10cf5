/**
 * Ends the waits for rewards whose deadline has passed, and publishes what another judge decided and could not publish.
 *
 * Every judge does this for all runs. Compare-and-set lets one of them decide (open-rollouts.ts), and a repeated publication is
 * stored once, so nobody has to be chosen, and the death of any of them delays nothing by more than seconds.
 */

import { pause } from "@hone/core";
import {
  type BucketEntry,
  type Bus,
  busTimeMs,
  RevisionConflictError,
  runsWithRewards,
} from "@hone/messaging";
import type { RolloutRewards } from "@hone/proto-gen/judge";
import type { Logger } from "@hone/telemetry";
import type { OpenRollouts } from "./open-rollouts.ts";
import { deadlineOf, isDecided, rolloutIn } from "./rollout-rewards.ts";

const LOOK_EVERY_MS = 500;
/** Who decides about an entry publishes it within milliseconds; after this time others take over. */
const TAKE_OVER_MS = 3_000;
/** Entries of runs that are over are removed without a message, so they are looked for. */
const FORGET_EVERY_MS = 60_000;
/** Entries in work at the same time. */
const WINDOW = 64;

interface Known {
  readonly entry: BucketEntry<RolloutRewards>;
  /** When this process saw it or tried it last, by its monotonic clock. */
  since: number;
}

export interface KeepDeadlinesOptions {
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/** Works until the signal aborts. Failures are logged, and tried again. */
export async function keepDeadlines(
  bus: Bus,
  rollouts: OpenRollouts,
  { logger, signal }: KeepDeadlinesOptions,
): Promise<void> {
  const known = new Map<string, Known>();
  const following = follow(rollouts, known, { logger, signal });
  /** What the clock of the bus shows more than this process's monotonic clock; undefined = not asked yet. */
  let offset: number | undefined;
  const askTime = async () => {
    offset = (await busTimeMs(bus)) - performance.now();
    return offset + performance.now();
  };
  let forgottenAt = performance.now();
  while (!signal.aborted) {
    await pause(LOOK_EVERY_MS, signal);
    if (signal.aborted || known.size === 0) continue;
    try {
      const guess = offset === undefined ? await askTime() : offset + performance.now();
      // A clock that was asked long ago may be wrong by now, and nothing may expire too early.
      const isAnyDue = [...known.values()].some(({ entry }) => isDue(entry.value, guess));
      const nowMs = isAnyDue ? await askTime() : guess;
      const due = [...known.values()].filter((each) => isRipe(each, nowMs));
      for (let from = 0; from < due.length; from += WINDOW) {
        await Promise.all(
          due.slice(from, from + WINDOW).map((each) => conclude(rollouts, each, nowMs, known)),
        );
      }
      if (performance.now() - forgottenAt > FORGET_EVERY_MS) {
        forgottenAt = performance.now();
        const runs = new Set(await runsWithRewards(bus));
        for (const [key, { entry }] of known) if (!runs.has(rolloutIn(entry.value).runId)) known.delete(key);
      }
    } catch (error) {
      if (!signal.aborted) logger.warn("waits for rewards cannot be ended at the moment", { error });
    }
  }
  await following;
}

async function follow(
  rollouts: OpenRollouts,
  known: Map<string, Known>,
  { logger, signal }: KeepDeadlinesOptions,
): Promise<void> {
  const onError = (error: unknown) =>
    logger.warn("rollouts that wait for rewards cannot be followed at the moment", { error });
  for await (const { key, value, revision } of rollouts.watch(signal, onError)) {
    if (value === undefined) known.delete(key);
    else known.set(key, { entry: { key, value, revision }, since: performance.now() });
  }
}

function isDue(entry: RolloutRewards, nowMs: number): boolean {
  return !isDecided(entry) && nowMs >= deadlineOf(entry);
}

function isRipe({ entry: { value }, since }: Known, nowMs: number): boolean {
  return isDue(value, nowMs) || (isDecided(value) && performance.now() - since >= TAKE_OVER_MS);
}

async function conclude(
  rollouts: OpenRollouts,
  item: Known,
  nowMs: number,
  known: Map<string, Known>,
): Promise<void> {
  item.since = performance.now();
  const { runId, slot } = rolloutIn(item.entry.value);
  const found = await rollouts.find(runId, slot);
  if (found === undefined || found.isScored) {
    if (known.get(item.entry.key) === item) known.delete(item.entry.key);
    return;
  }
  const { entry } = found;
  if (isDecided(entry.value)) return rollouts.settle(entry);
  if (!isDue(entry.value, nowMs)) return;
  try {
    await rollouts.settle(await rollouts.change(entry, { isExpired: true }));
  } catch (error) {
    // A reward or another judge was first.
    if (!(error instanceof RevisionConflictError)) throw error;
  }
}
