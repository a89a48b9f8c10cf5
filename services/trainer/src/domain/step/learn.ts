/** The updates of one step, from credit to weights: when it is made, and when it is made again after a restart. */

import { groupKey } from "@hone/core";
import { type Credit, type CreditedGroup, type CreditedRollout, MetricSet, type Rollout } from "@hone/rl";
import { valuesOf } from "../credit/score-rollouts.ts";
import { isWarmingCritic } from "../critic/critic-settings.ts";
import { trainCritic } from "../critic/train-critic.ts";
import { runOfLearner } from "../learners/learner.ts";
import { learningRoles, partsOfRoles } from "../learners/lessons.ts";
import type { TokenRecorder } from "../record/token-recorder.ts";
import type { RunContext } from "../run/run-context.ts";
import { correctPlan } from "./correct-plan.ts";
import { type Optimised, optimise } from "./optimise.ts";
import { planTraining } from "./training-plan.ts";

export type LearnContext = Pick<RunContext, "run" | "engine" | "critic" | "own" | "supervised" | "signal">;

/**
 * What one of a run's policies learns with: the engine and the settings are its own.
 * @param policy undefined = the run's own.
 */
export function meansOf(
  context: LearnContext & Pick<RunContext, "learners">,
  policy: string | undefined,
): LearnContext {
  const { run, engine, critic, own, supervised, signal } = context;
  if (policy === undefined) return { run, engine, critic, own, supervised, signal };
  const learner = context.learners.find(({ name }) => name === policy);
  if (learner === undefined) throw new TypeError(`the run has no engine for the policy "${policy}"`);
  // What a run imitates and what its critic expects belong to its own policy.
  return {
    run: runOfLearner(run, policy),
    engine: learner.engine,
    critic: undefined,
    own,
    supervised: { check: async () => undefined, batches: async () => undefined },
    signal,
  };
}

/** What a step learns from. */
export interface StepLessons {
  readonly credit: Credit;
  /** What the critic expected of its rollouts before the step; undefined where the run has no critic. */
  readonly values: ReadonlyMap<Rollout, Float32Array> | undefined;
  /** Notes what each token adds to the gradient; absent = nobody does. */
  readonly recorder?: TokenRecorder | undefined;
}

/** Trains on a step's rollouts. @param metrics get the figures of the updates. */
export async function learn(
  context: LearnContext,
  step: number,
  { credit, values, recorder }: StepLessons,
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
  const means = { engine, config: run.config, ownLoss: own.loss, supervised, recorder };
  return optimise(means, step, plan, metrics, onCall);
}

/**
 * Trains on the rollouts of a step that was committed before, as it was done then.
 * @param scored in order of their slots, each with what the ledger says of it.
 */
export async function learnAgain(
  context: LearnContext & Pick<RunContext, "learners">,
  step: number,
  scored: readonly CreditedRollout[],
): Promise<void> {
  const byGroup = Map.groupBy(scored, ({ rollout }) => groupKey(rollout.slot));
  const groups = [...byGroup.values()].map((rollouts) => ({
    task: rollouts[0]!.rollout.slot.task,
    rollouts,
  }));
  for (const { policy, roles } of learningRoles(context.run.config)) {
    const own = partsOfRoles(groups, roles, groupOfRole);
    const credit = { groups: own, leftOut: [], emptyGroupCount: 0, metrics: {} };
    const means = meansOf(context, policy);
    const values = await valuesOf(
      means,
      own.flatMap(({ rollouts }) => rollouts.map(({ rollout }) => rollout)),
    );
    await learn(means, step, { credit, values }, new MetricSet());
  }
}

/** The rollouts of a group that are parts of one role. */
function groupOfRole(group: CreditedGroup, role: string | undefined): CreditedGroup[] {
  const rollouts = group.rollouts.filter(({ rollout }) => rollout.role === role);
  return rollouts.length === 0 ? [] : [{ ...group, rollouts }];
}
