/** Tells what kind of work a run file asks for. */

import { Quantization } from "@hone/rl";
import { learningPolicies, policyModelName } from "./policies.ts";
import type { RunConfig } from "./schema.ts";

/** Whether the run trains its model. A run without steps and without a warm start only evaluates it. */
export function isTraining({ trainer, warmStart }: Pick<RunConfig, "trainer" | "warmStart">): boolean {
  return trainer.steps > 0 || warmStart !== undefined;
}

/** Whether rollouts of later steps are played while a step trains. */
export function isAsynchronous({ trainer, replay }: Pick<RunConfig, "trainer" | "replay">): boolean {
  return trainer.maxStaleness > 0 && trainer.steps > 0 && replay === undefined;
}

/** The version that a run begins with: that of a kept state where it replays from a later step. */
export function startVersion({ replay }: Pick<RunConfig, "replay">): number {
  return replay?.from === undefined ? 0 : replay.from - 1;
}

/** How the training engine computes the policy's products. PyTorch has a type of its own. */
export function trainingQuantization({
  trainer,
  rollout,
}: Pick<RunConfig, "trainer" | "rollout">): Quantization {
  const { engine } = trainer;
  return engine.kind === "onnx" ? (engine.quantization ?? rollout.quantization) : Quantization.none;
}

/** Whether the run compares its policy with the reference policy, which is version 0. */
export function hasReference({ algorithm, trainer }: Pick<RunConfig, "algorithm" | "trainer">): boolean {
  const { kl, reward, distillation } = algorithm;
  const isTeacher = distillation?.teachers.some(isFirstVersion) ?? false;
  return (kl.coefficient > 0 || reward.kl !== undefined || isTeacher) && trainer.steps > 0;
}

/** Whether a teacher is version 0 of the policy. */
export function isFirstVersion({
  model,
  endpoint,
}: NonNullable<RunConfig["algorithm"]["distillation"]>["teachers"][number]): boolean {
  return model === undefined && endpoint === undefined;
}

/** A model that a run reads beside its policy. */
export interface OtherModel {
  /** Its name within the run: `critic`, `policy-` with the policy's name, or `teacher-` with the teacher's place, from 0. */
  readonly name: string;
  /** The key of the run file that names it. */
  readonly key: string;
  readonly place: { readonly path: string; readonly revision: string };
}

/** The models that a run reads beside its policy: those of its teachers, and those that its critic and its policies begin with. */
export function otherModels(run: Pick<RunConfig, "algorithm" | "policies" | "trainer">): OtherModel[] {
  const { algorithm, trainer } = run;
  if (trainer.steps === 0) return [];
  const models: OtherModel[] = (algorithm.distillation?.teachers ?? []).flatMap(({ model }, index) =>
    model === undefined
      ? []
      : [
          {
            name: teacherName(index),
            key: `algorithm.distillation.teachers[${index}].model`,
            place: model,
          },
        ],
  );
  for (const { name, model } of learningPolicies(run)) {
    if (model !== undefined)
      models.push({ name: policyModelName(name), key: `policies.${name}.model`, place: model });
  }
  const { model } = trainer.critic ?? {};
  return model === undefined
    ? models
    : [...models, { name: CRITIC, key: "trainer.critic.model", place: model }];
}

/** The name of a critic's first model in {@link otherModels}. */
export const CRITIC = "critic";

/** The name of a teacher's model in {@link otherModels}. */
export function teacherName(index: number): string {
  return `teacher-${index}`;
}

/** Whether the run trains a critic beside its policy. */
export function hasCritic({ trainer }: Pick<RunConfig, "trainer">): boolean {
  return trainer.critic !== undefined && trainer.steps > 0;
}

/** The values of k for which the run reports pass@k: those that it names, or the powers of two up to its samples. */
export function passAtOf({ trainer }: Pick<RunConfig, "trainer">): readonly number[] {
  const { passAt, samples } = trainer.eval;
  return passAt ?? Array.from({ length: Math.floor(Math.log2(samples)) + 1 }, (_, i) => 2 ** i);
}
