/**
 * What teachers add to the advantages of a step (`algorithm.distillation`). Its rollouts are scored once, before the first
 * update; the ledger keeps the advantages, so that a step which is made again needs no teacher.
 */

import {
  type DistillationConfig,
  distillationAdvantages,
  estimateKl,
  type MetricSet,
  meanKl,
  Reduction,
  type Rollout,
  rolloutLogprobs,
  type TeacherConfig,
  type TeacherScores,
  teaches,
} from "@hone/rl";
import { scoreRollouts } from "../credit/score-rollouts.ts";
import { WaitOwner } from "../report/wait.ts";
import { type DescribedTask, fieldsOf } from "../rollouts/task-fields.ts";
import type { RunContext } from "../run/run-context.ts";

type TeacherContext = Pick<RunContext, "run" | "engine" | "teachers" | "reporter">;

/** The rollouts of one task. */
export interface TaughtGroup<R extends Rollout> {
  readonly task: DescribedTask;
  readonly rollouts: readonly R[];
}

/**
 * @param metrics get `distillation/kl/mean`, the mean over rollouts of the mean over their tokens of the distance from their
 *   teachers; with several teachers, for each of them also `distillation/teacher_<place>/kl/mean`.
 * @returns for each rollout that may be trained and has a teacher [N] what is added to the advantage of its sampled tokens;
 *   undefined where the run has no teachers.
 */
export async function askTeachers<R extends Rollout>(
  context: TeacherContext,
  groups: readonly TaughtGroup<R>[],
  metrics: MetricSet,
): Promise<ReadonlyMap<R, Float64Array> | undefined> {
  const { distillation } = context.run.config.algorithm;
  if (distillation === undefined) return undefined;
  const { teachers, kind } = distillation;
  const scores = new Map<R, TeacherScores[]>();
  const distances: number[][] = [];
  for (const [place, teacher] of teachers.entries()) {
    const found = await scoresOf(context, place, pupilsOf(teacher, groups));
    const ofTeacher = [...found].map(([rollout, logprobs]) => {
      scores.set(rollout, [...(scores.get(rollout) ?? []), { coefficient: teacher.coefficient, logprobs }]);
      return distancesOf(rollout, logprobs, kind);
    });
    distances.push(...ofTeacher);
    if (teachers.length > 1) {
      metrics.add(`distillation/teacher_${place}/kl/mean`, Reduction.last, meanKl(ofTeacher));
    }
  }
  metrics.add("distillation/kl/mean", Reduction.last, meanKl(distances));
  return new Map(
    [...scores].map(([rollout, ofTeachers]): [R, Float64Array] => [
      rollout,
      distillationAdvantages(rolloutLogprobs(rollout), ofTeachers, kind),
    ]),
  );
}

/** The rollouts of a teacher's tasks. */
function pupilsOf<R extends Rollout>(teacher: TeacherConfig, groups: readonly TaughtGroup<R>[]): R[] {
  return groups.flatMap(({ task, rollouts }) =>
    teacher.where === undefined || teaches(teacher, fieldsOf(task)) ? rollouts : [],
  );
}

function scoresOf<R extends Rollout>(
  { run, engine, teachers, reporter }: TeacherContext,
  place: number,
  rollouts: readonly R[],
): Promise<ReadonlyMap<R, Float32Array>> {
  const teacher = teachers.get(place);
  const { temperature } = run.config.rollout.sampling;
  return scoreRollouts(rollouts, async (samples) =>
    teacher === undefined
      ? (await engine.referenceLogprobs(samples, { temperature })).logprobs
      : reporter.untilAvailable({ text: `teacher ${place}`, owner: WaitOwner.you }, () =>
          teacher.logprobs(samples, { temperature }),
        ),
  );
}

function distancesOf(rollout: Rollout, ofTeacher: Float32Array, kind: DistillationConfig["kind"]): number[] {
  return rolloutLogprobs(rollout).map((logprob, token) => estimateKl(kind, logprob, ofTeacher[token]!));
}
