/** How an attempt ended, and what its span says of it. */

import { groupIdOf, rolloutIdOf, slotKey } from "@hone/core";
import { Attr, AttrValue, recordError, type Span } from "@hone/telemetry";
import type { RolloutJob, RolloutRecord } from "./rollout-job.ts";

/** The record of one attempt; the rollout adds the earlier attempts. */
export type AttemptRecord = Omit<RolloutRecord, "failedAttempts">;

/** How an attempt ended. */
export type AttemptEnd =
  | { readonly kind: "ended"; readonly record: AttemptRecord }
  /** Something outside the agent failed. */
  | {
      readonly kind: "infra_failed";
      readonly record: AttemptRecord;
      readonly isRetryable: boolean;
      /** How often a rollout may end an attempt like this before it counts as a failed one. */
      readonly freeReturns: number;
    }
  /** One of Hone's own parts was missing, so nothing is published and the job goes back to the queue. */
  | { readonly kind: "given_back"; readonly error: unknown };

export function spanAttributesOf(job: RolloutJob, attempt: number) {
  const rolloutId = rolloutIdOf(job.runId, job.slot);
  return {
    [Attr.genAiOperation]: AttrValue.operationInvokeAgent,
    [Attr.genAiAgentName]: job.agentName,
    [Attr.genAiConversationId]: rolloutId,
    [Attr.runId]: job.runId,
    [Attr.slot]: slotKey(job.slot),
    [Attr.step]: job.slot.step,
    [Attr.split]: job.slot.split,
    [Attr.groupId]: groupIdOf(job.runId, job.slot),
    [Attr.rolloutId]: rolloutId,
    [Attr.taskId]: job.task.id,
    [Attr.attempt]: attempt,
  };
}

export function describeEnd(span: Span, end: AttemptEnd): void {
  if (!span.isRecording()) return;
  if (end.kind === "given_back") {
    recordError(span, end.error);
    return;
  }
  const { record } = end;
  span.setAttributes({
    [Attr.outcome]: record.outcome,
    [Attr.turnCount]: record.turns.length,
    [Attr.sampleCount]: record.samples.length,
    [Attr.environmentReturn]: record.environmentReturn,
    ...(record.reason !== "" && { [Attr.outcomeReason]: record.reason }),
  });
}
