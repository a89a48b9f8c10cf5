/** Makes the entry of an episode that waits for rewards, when it comes from the stream. */

import { create } from "@bufbuild/protobuf";
import { Outcome, Split } from "@hone/core";
import { slotFromWire, type WorkItem } from "@hone/messaging";
import { RolloutRewardsSchema } from "@hone/proto-gen/judge";
import { type Episode, type ScoredEpisode, ScoredEpisodeSchema } from "@hone/proto-gen/rollout";
import { weightedSum } from "@hone/rl";
import { type Context, injectContext } from "@hone/telemetry";
import { type AwaitingEpisode, failedEpisode, scoreToWire } from "../judge-episode.ts";
import type { RunPanels } from "../run-panels.ts";
import type { OpenRollouts } from "./open-rollouts.ts";
import { episodeDigest } from "./rollout-rewards.ts";

/** Whether an episode that is delivered again waits for rewards already, so that its judges need not be asked twice. */
export async function isKept(
  panels: RunPanels,
  rollouts: OpenRollouts,
  { message: { runId, task, slot, attempt, resumption }, sequence, deliveries }: WorkItem<Episode>,
): Promise<boolean> {
  if (deliveries === 1) return false;
  const rules = await panels.rulesOf(runId, task?.part ?? "").catch(() => undefined);
  if (rules?.rewardDeadlineMs === undefined) return false;
  const { finished } = (await rollouts.find(runId, slotFromWire(slot)))?.entry.value ?? {};
  return (
    finished !== undefined &&
    finished.position === BigInt(sequence) &&
    finished.attempt === attempt &&
    finished.resumption === resumption
  );
}

/**
 * Stores that an episode waits for rewards.
 * @returns undefined, or the scored episode where nothing is waited for.
 */
export async function keepEpisode(
  { scores, awaited }: AwaitingEpisode,
  panels: RunPanels,
  rollouts: OpenRollouts,
  { message: episode, sequence, storedAtMs }: WorkItem<Episode>,
  trace: Context,
): Promise<ScoredEpisode | undefined> {
  const { runId, slot, attempt, resumption, task } = episode;
  const soFar = scores.map(scoreToWire);
  if (slot?.split === Split.warmStart) {
    // Nothing depends on the rewards of what a scripted policy plays.
    return create(ScoredEpisodeSchema, { episode, scores: soFar, reward: weightedSum(scores) });
  }
  const { rewardDeadlineMs, takesSessionRewards } = await panels.rulesOf(runId, task?.part ?? "");
  const entry = create(RolloutRewardsSchema, {
    finished: { position: BigInt(sequence), runId, ...(slot && { slot }), attempt, resumption },
    episodeDigest: episodeDigest(episode),
    sinceMs: BigInt(storedAtMs),
    deadlineMs: BigInt(rewardDeadlineMs ?? 0),
    sessionKeyDigests: takesSessionRewards ? episode.sessionKeyDigests : [],
    scores: soFar,
    awaited: awaited.map(({ judge, weight, place, roles = [], fallback }) => ({
      roles: [...roles],
      judge,
      weight,
      place,
      ...(fallback !== undefined && { defaultValue: fallback }),
    })),
    traceparent: traceparentIn(trace),
  });
  if (rollouts.hasRoomFor(entry)) {
    await rollouts.add(entry);
    return undefined;
  }
  const reason =
    "its other judges gave more figures and rewards of turns than can be kept while it waits for a reward";
  return failedEpisode(episode, Outcome.infraFailed, reason);
}

function traceparentIn(trace: Context): string {
  const headers = new Map<string, string>();
  const carrier = {
    get: (key: string) => headers.get(key),
    set: (key: string, value: string) => void headers.set(key, value),
    keys: () => [...headers.keys()],
  };
  injectContext(carrier, trace);
  return headers.get("traceparent") ?? "";
}
