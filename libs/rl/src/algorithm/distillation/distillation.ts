/**
 * On-policy distillation: teachers score the tokens that the policy sampled, and each token's advantage grows by how much
 * likelier they find it than the policy did (Agarwal et al., 2023, https://arxiv.org/abs/2306.13649; as a part of the
 * advantage as in ROLL).
 *
 *   A_t -> A_t - sum over teachers of coefficient KL_t      KL_t is the estimate of `kind`, with k1: log b_t - log teacher_t
 *
 * b is the probability with which the token was sampled. No reward is needed: with `useRewards: false`, A_t is the sum alone.
 */

import { z } from "zod";
import { modelPlaceShape } from "../../model-place.ts";
import { estimateKl, KlKind } from "../kl/estimators.ts";

const MAX_TEACHERS = 8;

export const teacherSchema = z.strictObject({
  /** The model that scores, which has the tokenizer of the policy. Absent = an endpoint, or version 0 of the policy itself. */
  model: z.strictObject(modelPlaceShape).optional(),
  /** ROLL: opd_kl_coef. */
  coefficient: z.number().positive().max(1e3).default(1),
  /** Fields of a task's row with the values that tasks of this teacher have there; absent = it scores all tasks. */
  where: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).optional(),
});
export type TeacherConfig = z.output<typeof teacherSchema>;

/** @param teacher what one teacher may have. */
export function listOfTeachers<T extends z.ZodType>(teacher: T) {
  return z.array(teacher).min(1).max(MAX_TEACHERS);
}

/** `algorithm.distillation` of a run file, without models behind an API. */
export const distillationSchema = z.strictObject({
  teachers: listOfTeachers(teacherSchema),
  /** How the distance from a teacher is estimated from the sampled tokens. ROLL: kl_penalty. */
  kind: z.enum(KlKind).default(KlKind.k1),
  /** Whether the advantages of the rewards count too. verl: use_task_rewards; ROLL: is_pure_opd is the opposite. */
  useRewards: z.boolean().default(true),
});
export type DistillationConfig = z.output<typeof distillationSchema>;

/** What one teacher says of a rollout's N sampled tokens. */
export interface TeacherScores {
  readonly coefficient: number;
  /** [N] */
  readonly logprobs: ArrayLike<number>;
}

/**
 * @param logprobs [N] of the sampled tokens, when they were sampled.
 * @returns [N] what the teachers add to the advantage of each token.
 */
export function distillationAdvantages(
  logprobs: ArrayLike<number>,
  teachers: readonly TeacherScores[],
  kind: KlKind,
): Float64Array {
  const advantages = new Float64Array(logprobs.length);
  for (const { coefficient, logprobs: ofTeacher } of teachers) {
    for (let token = 0; token < advantages.length; token++) {
      advantages[token]! -= coefficient * estimateKl(kind, logprobs[token]!, ofTeacher[token]!);
    }
  }
  return advantages;
}

/** Whether a task whose row has these fields is one of a teacher's. */
export function teaches(
  { where }: Pick<TeacherConfig, "where">,
  row: Readonly<Record<string, unknown>>,
): boolean {
  return Object.entries(where ?? {}).every(([field, value]) => row[field] === value);
}
