/** The subjects that this service answers. Replicas share the requests by a queue group. */

import { type Bus, type Responder, respond, subjects, ValidatingService } from "@hone/messaging";
import {
  GroupReplySchema,
  GroupRequestSchema,
  ScoreReplySchema,
  ScoreRequestSchema,
} from "@hone/proto-gen/judge";
import { ValidateReplySchema, ValidateRequestSchema } from "@hone/proto-gen/run";
import type { Logger } from "@hone/telemetry";
import { answerGroup } from "./answer-group.ts";
import { answerScore } from "./answer-score.ts";
import { answerValidate } from "./answer-validate.ts";
import type { RunPanels } from "./run-panels.ts";

const QUEUE_GROUP = "judge";

/** Options of {@link serveJudge}. */
export interface ServeJudgeOptions {
  readonly logger: Logger;
  /** Aborts when answers are not needed any more. */
  readonly signal: AbortSignal;
}

/** Starts answering. @returns the responders, which the caller drains at the end. */
export function serveJudge(bus: Bus, panels: RunPanels, { logger, signal }: ServeJudgeOptions): Responder[] {
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
    respond(bus, subjects.validate(ValidatingService.judge), ValidateRequestSchema, ValidateReplySchema, {
      queue: QUEUE_GROUP,
      onError,
      handle: async ({ message, reply }) => reply(await answerValidate(message, panels.parts)),
    }),
  ];
}
