/** The subjects that this service answers. Replicas share the requests by a queue group. */

import { type Bus, type Responder, respond, subjects, ValidatingService } from "@hone/messaging";
import { ScoreReplySchema, ScoreRequestSchema } from "@hone/proto-gen/judge";
import { ValidateReplySchema, ValidateRequestSchema } from "@hone/proto-gen/run";
import type { Logger } from "@hone/telemetry";
import { answerScore } from "./answer-score.ts";
import { answerValidate } from "./answer-validate.ts";

const QUEUE_GROUP = "judge";

/** Starts answering. @returns the responders, to be drained at the end. */
export function serveJudge(bus: Bus, logger: Logger): Responder[] {
  const onError = (error: unknown, subject: string) => logger.error("a request failed", { subject, error });
  return [
    respond(bus, subjects.judgeScore(), ScoreRequestSchema, ScoreReplySchema, {
      queue: QUEUE_GROUP,
      onError,
      handle: ({ message, reply }) => reply(answerScore(message)),
    }),
    respond(bus, subjects.validate(ValidatingService.judge), ValidateRequestSchema, ValidateReplySchema, {
      queue: QUEUE_GROUP,
      onError,
      handle: ({ message, reply }) => reply(answerValidate(message)),
    }),
  ];
}
