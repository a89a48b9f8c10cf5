/** The subjects that this service answers. Replicas share the requests by a queue group. */

import { type Bus, type Responder, respond, subjects, ValidatingService } from "@hone/messaging";
import { BatchReplySchema, BatchRequestSchema } from "@hone/proto-gen/dataset";
import { ValidateReplySchema, ValidateRequestSchema } from "@hone/proto-gen/run";
import { type Logger, SpanKind, SpanName, withSpan } from "@hone/telemetry";
import type { SourceParts } from "../files/sources/open-source.ts";
import { answerBatch } from "./batch.ts";
import { answerValidate } from "./validate.ts";

const QUEUE_GROUP = "dataset";

/** Starts answering. @returns the responders, which the caller drains at the end. */
export function serveDataset(bus: Bus, parts: SourceParts, logger: Logger): Responder[] {
  const onError = (error: unknown, subject: string) => logger.error("a request failed", { subject, error });
  return [
    respond(bus, subjects.datasetBatch(), BatchRequestSchema, BatchReplySchema, {
      queue: QUEUE_GROUP,
      onError,
      handle: ({ message, trace, reply }) =>
        withSpan(SpanName.datasetBatch, { parent: trace, kind: SpanKind.SERVER }, async () => {
          const answer = await answerBatch(message, parts);
          if (answer.error !== "") logger.warn("a batch was refused", { reason: answer.error });
          await reply(answer);
        }),
    }),
    respond(bus, subjects.validate(ValidatingService.dataset), ValidateRequestSchema, ValidateReplySchema, {
      queue: QUEUE_GROUP,
      onError,
      handle: async ({ message, reply }) => reply(await answerValidate(message, parts)),
    }),
  ];
}
