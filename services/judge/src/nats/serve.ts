/** The subjects that this service answers. Replicas share the requests by a queue group. */

import { type Bus, type Responder, RewardGiver, respond, subjects, ValidatingService } from "@hone/messaging";
import {
  GroupReplySchema,
  GroupRequestSchema,
  RewardReplySchema,
  RewardRequestSchema,
  ScoreReplySchema,
  ScoreRequestSchema,
} from "@hone/proto-gen/judge";
import { ValidateReplySchema, ValidateRequestSchema } from "@hone/proto-gen/run";
import type { Logger } from "@hone/telemetry";
import { answerGroup } from "./answer-group.ts";
import { answerScore } from "./answer-score.ts";
import { answerValidate } from "./answer-validate.ts";
import { answerReward } from "./rewards/answer-reward.ts";
import type { OpenRollouts } from "./rewards/open-rollouts.ts";
import type { RunPanels } from "./run-panels.ts";

const QUEUE_GROUP = "judge";

/** Options of {@link serveJudge}. */
export interface ServeJudgeOptions {
  readonly logger: Logger;
  readonly rollouts: OpenRollouts;
  /** Aborts when answers are not needed any more. */
  readonly signal: AbortSignal;
}

/** Starts answering. @returns the responders, which the caller drains at the end. */
export function serveJudge(
  bus: Bus,
  panels: RunPanels,
  { logger, rollouts, signal }: ServeJudgeOptions,
): Responder[] {
  const onError = (error: unknown, subject: string) => logger.error("a request failed", { subject, error });
  return [
    respond(bus, subjects.judgeScore(), ScoreRequestSchema, ScoreReplySchema, {
      queue: QUEUE_GROUP,
      onError,
      handle: async ({ message, reply }) => reply(await answerScore(message, panels, { signal })),
    }),
    respond(bus, subjects.judgeGroup(), GroupRequestSchema, GroupReplySchema, {
      queue: QUEUE_GROUP,
      onError,
      handle: async ({ message, reply }) => reply(await answerGroup(bus, message, panels, { signal })),
    }),
    ...Object.values(RewardGiver).map((giver) =>
      respond(bus, subjects.judgeReward(giver), RewardRequestSchema, RewardReplySchema, {
        queue: QUEUE_GROUP,
        onError,
        handle: async (incoming) => {
          const { reply, decided } = await answerReward(incoming.message, giver, rollouts);
          await incoming.reply(reply);
          // If this fails, keep-deadlines.ts does it.
          if (decided !== undefined) await rollouts.settle(decided);
        },
      }),
    ),
    respond(bus, subjects.validate(ValidatingService.judge), ValidateRequestSchema, ValidateReplySchema, {
      queue: QUEUE_GROUP,
      onError,
      handle: async ({ message, reply }) => reply(await answerValidate(message, panels.parts)),
    }),
  ];
}
