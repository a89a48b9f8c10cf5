/** A rollout that waits for a reward which is given later. */

import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import {
  BucketName,
  openBucket,
  openRewardKey,
  publishStored,
  StreamName,
  slotToWire,
  subjects,
} from "@hone/messaging";
import { RolloutRewardsSchema } from "@hone/proto-gen/judge";
import { EpisodeSchema } from "@hone/proto-gen/rollout";
import { chatEpisode } from "./chat-episode.ts";
import type { TracerStack } from "./stack.ts";

/** A finished rollout that waits for the reward of a person, as the judge stores it. */
export async function storeWaitingRollout({ bus, run }: TracerStack): Promise<void> {
  const { runId } = run;
  const slot = { split: "train", step: 41, task: 0, index: 0 } as const;
  const { episode } = chatEpisode(runId, slot);
  assert.ok(episode !== undefined);
  await publishStored(bus, subjects.rolloutFinished(runId), EpisodeSchema, create(EpisodeSchema, episode));
  const { state } = await bus.manager.streams.info(StreamName.episodes);
  const bucket = await openBucket(bus, BucketName.rewards, RolloutRewardsSchema);
  await bucket.put(
    openRewardKey(runId, slot),
    create(RolloutRewardsSchema, {
      finished: { position: BigInt(state.last_seq), runId, slot: slotToWire(slot), attempt: 1 },
      sinceMs: BigInt(Date.now() - 60_000),
      deadlineMs: 3_600_000n,
      awaited: [{ judge: "people", weight: 1, place: 0 }],
    }),
  );
}
