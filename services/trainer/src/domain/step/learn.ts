/** The updates of one step, from credit to weights: when it is made, and when it is made again after a restart. */

import { groupKey } from "@hone/core";
import { type Credit, type CreditedRollout, MetricSet, type Rollout } from "@hone/rl";
import { valuesOf } from "../credit/score-rollouts.ts";
import { isWarmingCritic } from "../critic/critic-settings.ts";
import { trainCritic } from "../critic/train-critic.ts";
import type { RunContext } from "../run/run-context.ts";
import { correctPlan } from "./correct-plan.ts";
import { type Optimised, optimise } from "./optimise.ts";
import { planTraining } from "./training-plan.ts";

export type LearnContext = Pick<RunContext, "run" | "engine" | "critic" | "own" | "supervised" | "signal">;

/** What a step learns from. */
export interface StepLessons {
  readonly credit: Credit;
  /** What the critic expected of its rollouts before the step; undefined where the run has no critic. */
  readonly values: ReadonlyMap<Rollout, Float32Array> | undefined;
}

/** Trains on a step's rollouts. @param metrics get the figures of the updates. */
export async function learn(
  context: LearnContext,
  step: number,
  { credit, values }: StepLessons,
  metrics: MetricSet,
): Promise<Optimised> {
  const { run, engine, critic, own, signal } = context;
  const onCall = () => signal.throwIfAborted();
  if (critic !== undefined && values !== undefined) {
    await trainCritic({ run, critic, signal }, step, credit, values, metrics);
  }
  const isWarming = isWarmingCritic(run.config, step);
  const planned = planTraining(credit, run.config, own.loss).map((minibatch) =>
    isWarming ? { ...minibatch, samples: [] } : minibatch,
  );
  const supervised = isWarming ? undefined : await context.supervised.batches(step);
  const plan = await correctPlan(engine, run.config, planned, metrics, onCall);
  const means = { engine, config: run.config, ownLoss: own.loss, supervised };
  return optimise(means, step, plan, metrics, onCall);
}

/**
 * Trains on the rollouts of a step that was committed before, as it was done then.
 * @param scored in order of their slots, each with what the ledger says of it.
 */
export async function learnAgain(
  context: LearnContext,
  step: number,
  scored: readonly CreditedRollout[],
): Promise<void> {
  const byGroup = Map.groupBy(scored, ({ rollout }) => groupKey(rollout.slot));
  const groups = [...byGroup.values()].map((rollouts) => ({
    task: rollouts[0]!.rollout.slot.task,
    rollouts,
  }));
  const credit = { groups, leftOut: [], emptyGroupCount: 0, metrics: {} };
  const values = await valuesOf(
    context,
    scored.map(({ rollout }) => rollout),
  );
  await learn(context, step, { credit, values }, new MetricSet());
}
