/** The updates of one step, from credit to weights: when it is made, and when it is made again after a restart. */

import { type Credit, type CreditedRollout, MetricSet } from "@hone/rl";
import type { RunContext } from "../run/run-context.ts";
import { correctPlan } from "./correct-plan.ts";
import { type Optimised, optimise } from "./optimise.ts";
import { planTraining } from "./training-plan.ts";

export type LearnContext = Pick<RunContext, "run" | "engine" | "signal">;

/** Trains on a step's rollouts. @param metrics get the figures of the updates. */
export async function learn(
  context: LearnContext,
  step: number,
  credit: Credit,
  metrics: MetricSet,
): Promise<Optimised> {
  const { run, engine, signal } = context;
  const onCall = () => signal.throwIfAborted();
  const planned = planTraining(credit, run.config);
  const plan = await correctPlan(engine, run.config, planned, metrics, onCall);
  return optimise(engine, run.config, step, plan, metrics, onCall);
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
  const byTask = Map.groupBy(scored, ({ rollout }) => rollout.slot.task);
  const groups = [...byTask].map(([task, rollouts]) => ({ task, rollouts }));
  await learn(context, step, { groups, leftOut: [], emptyGroupCount: 0, metrics: {} }, new MetricSet());
}
