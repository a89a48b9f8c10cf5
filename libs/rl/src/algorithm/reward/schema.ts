/** `algorithm.reward` of a run file: what becomes of rewards before advantages are made of them, in this order. */

import { z } from "zod";
import { klRewardSchema } from "./kl-penalty.ts";
import { overlongSchema } from "./length-penalty.ts";
import { normalizeShape } from "./normalize.ts";

export const rewardSchema = z
  .strictObject({
    /** A penalty of long rollouts; absent = none. */
    overlong: overlongSchema.optional(),
    /** Normalisation; absent = rewards stay as they are. ROLL: reward_normalization. */
    normalize: z.strictObject(normalizeShape).optional(),
    /** Rewards are kept within [-clip, clip]; null = they stay as they are. ROLL: reward_clip. */
    clip: z.number().positive().nullable().default(null),
    /** What each token loses that moves away from the reference policy, version 0; absent = nothing. */
    kl: klRewardSchema.optional(),
  })
  .prefault({});

/** How rewards are shaped. */
export type RewardConfig = z.output<typeof rewardSchema>;
