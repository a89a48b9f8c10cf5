/** Records training in traces after the commit: a `train` span in each rollout's trace, and links to them from the step's. */

import { groupIdOf, rolloutIdOf, slotKey } from "@hone/core";
import type { Credit } from "@hone/rl";
import { Attr, type Span, SpanName, startSpan } from "@hone/telemetry";
import type { ScoredRollout } from "../rollouts/scored-rollout.ts";
import type { RunRecord } from "../run/run-record.ts";
import type { Optimised } from "./optimise.ts";

export interface TrainedStep {
  /** Of all policies. */
  readonly credited: Credit<ScoredRollout>["groups"];
  readonly optimised: Optimised;
  /** Span of the step. */
  readonly span: Span;
}

/** Makes the spans of the rollouts that a committed step trained. */
export function traceTraining(
  run: RunRecord,
  step: number,
  { credited: groups, optimised, span }: TrainedStep,
): void {
  for (const group of groups) {
    for (const credited of group.rollouts) {
      const { slot, role, outcome, trace } = credited.rollout;
      const figures = optimised.figures.get(credited);
      const train = startSpan(SpanName.train, {
        parent: trace,
        links: [{ context: span.spanContext() }],
        attributes: {
          [Attr.runId]: run.runId,
          [Attr.step]: step,
          [Attr.slot]: slotKey(slot),
          [Attr.groupId]: groupIdOf(run.runId, slot),
          [Attr.rolloutId]: rolloutIdOf(run.runId, slot),
          [Attr.outcome]: outcome,
          ...(role !== undefined && { [Attr.role]: role }),
          [Attr.policyVersion]: step,
          [Attr.reward]: credited.reward,
          [Attr.advantage]: credited.advantage,
          ...(credited.turnAdvantages !== undefined && {
            [Attr.turnAdvantages]: [...credited.turnAdvantages],
          }),
          ...(figures !== undefined && {
            [Attr.trainedTokens]: figures.tokens,
            [Attr.ratioMean]: figures.ratioSum / Math.max(1, figures.tokens),
            [Attr.ratioMax]: figures.ratioMax,
            [Attr.clipFraction]: figures.clipped / Math.max(1, figures.tokens),
          }),
        },
      });
      if (train.isRecording()) span.addLink({ context: train.spanContext() });
      train.end();
    }
  }
}
