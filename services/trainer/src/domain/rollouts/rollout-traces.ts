/**
 * The root spans of rollouts: each starts when its job is published and ends when its scored episode arrives. It is linked to the
 * span in which dataset was asked for its task.
 *
 * A span exists only in the process that published the job. After a restart of the trainer the root span is never ended, but
 * the later spans of the trace (judge, train) still join it through the trace context that the messages carry.
 */

import { agentOfPart } from "@hone/config";
import { groupIdOf, Outcome, rolloutIdOf, type Slot, slotKey } from "@hone/core";
import { Attr, type Context, contextOf, type Span, SpanKind, SpanName, startSpan } from "@hone/telemetry";
import type { RunRecord } from "../run/run-record.ts";
import type { Job } from "./jobs.ts";
import type { ScoredRollout } from "./scored-rollout.ts";

export class RolloutTraces {
  readonly #open = new Map<string, Span>();

  /** Starts the root span of a job. `drop` discards it if the queue already had the job, with another root span. */
  open(run: RunRecord, { slot, task }: Job): { context: Context; drop: () => void } {
    const span = startSpan(SpanName.rollout, {
      parent: "root",
      kind: SpanKind.PRODUCER,
      ...(task.askedIn !== undefined && { links: [task.askedIn] }),
      attributes: {
        [Attr.runId]: run.runId,
        [Attr.runName]: run.config.name,
        [Attr.step]: slot.step,
        [Attr.split]: slot.split,
        [Attr.slot]: slotKey(slot),
        [Attr.groupId]: groupIdOf(run.runId, slot),
        [Attr.rolloutId]: rolloutIdOf(run.runId, slot),
        [Attr.taskId]: task.id,
        [Attr.genAiAgentName]: agentOfPart(run.config, task.part).name,
      },
    });
    const key = slotKey(slot);
    this.#open.set(key, span);
    return { context: contextOf(span), drop: () => void this.#open.delete(key) };
  }

  /** Ends the root span of a rollout, if this process started it. */
  scored(rollout: ScoredRollout): void {
    const key = slotKey(rollout.slot);
    const span = this.#open.get(key);
    if (span === undefined) return;
    this.#open.delete(key);
    span.setAttributes({
      [Attr.outcome]: rollout.outcome,
      [Attr.attempt]: rollout.attempt,
      [Attr.turnCount]: rollout.turnCount,
      [Attr.sampleCount]: rollout.samples.length,
    });
    span.end();
  }

  /** Ends the root spans of rollouts that are no longer waited for. */
  cancelled(slots: readonly Slot[]): void {
    for (const key of slots.map(slotKey)) {
      const span = this.#open.get(key);
      if (span === undefined) continue;
      this.#open.delete(key);
      span.setAttributes({ [Attr.outcome]: Outcome.cancelled });
      span.end();
    }
  }

  /** Ends all open spans, because this process no longer continues the run. */
  close(): void {
    for (const span of this.#open.values()) span.end();
    this.#open.clear();
  }
}
