/**
 * Root spans of rollouts: opened when a job is sent, ended when its scored episode arrives.
 *
 * A span lives in the process that sent the job; after a restart the trace goes on without its root's end, and what
 * follows (judge, train) still joins it through the context that the messages carry.
 */

import { groupIdOf, rolloutIdOf, slotKey } from "@hone/core";
import { Attr, type Context, contextOf, type Span, SpanKind, SpanName, startSpan } from "@hone/telemetry";
import type { RunRecord } from "../run/run-record.ts";
import type { Job } from "./jobs.ts";
import type { ScoredRollout } from "./scored-rollout.ts";

export class RolloutTraces {
  readonly #open = new Map<string, Span>();

  /** Starts the root span of a job; `drop` forgets it where the queue had the job already, under another root. */
  open(run: RunRecord, { slot, task }: Job): { context: Context; drop: () => void } {
    const span = startSpan(SpanName.rollout, {
      parent: "root",
      kind: SpanKind.PRODUCER,
      attributes: {
        [Attr.runId]: run.runId,
        [Attr.runName]: run.config.name,
        [Attr.step]: slot.step,
        [Attr.split]: slot.split,
        [Attr.slot]: slotKey(slot),
        [Attr.groupId]: groupIdOf(run.runId, slot),
        [Attr.rolloutId]: rolloutIdOf(run.runId, slot),
        [Attr.taskId]: task.id,
        [Attr.genAiAgentName]: run.config.agent.name,
      },
    });
    const key = slotKey(slot);
    this.#open.set(key, span);
    return { context: contextOf(span), drop: () => void this.#open.delete(key) };
  }

  /** Ends the root span of a rollout, if this process opened it. */
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

  /** Ends what is open, as the run goes no further here. */
  close(): void {
    for (const span of this.#open.values()) span.end();
    this.#open.clear();
  }
}
