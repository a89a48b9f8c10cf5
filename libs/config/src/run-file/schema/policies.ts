/**
 * The keys `policies` and `roles`: which policies a run has beside its own, and which role of a rollout each of them plays.
 *
 * The run's own policy is what `model` and `trainer` describe; a role without a policy is played by it. A further policy is
 * either trained, by the parts of rollouts that its roles played, or it is earlier versions of one that is trained.
 */

import { modelPlaceShape } from "@hone/rl";
import { z } from "zod";
import { optimizer } from "./optimizer.ts";

/** Every engine of the run holds each of them. */
const MAX_POLICIES = 16;
export const MAX_ROLES = 32;
/** Every engine of the run holds each of these versions, too. */
const MAX_EARLIER = 16;

const POLICY_NAME = /^[a-z][a-z0-9-]{0,31}$/;
export const ROLE_NAME = /^[a-z][a-z0-9_-]{0,63}$/;

const earlier = z.strictObject({
  /** The policy whose versions they are. Default: the run's own. */
  of: z.string().regex(POLICY_NAME, "the name of a policy").optional(),
  /** Every version that is a multiple of this becomes one of them. */
  every: z.number().int().min(1).default(10),
  /** How many of the latest are played; which one follows from the run's seed and the task. */
  size: z.number().int().min(1).max(MAX_EARLIER).default(4),
});

const policy = z.strictObject({
  /** The model that it begins with, which has the tokenizer of the run's own. Default: version 0 of the run's own policy. */
  model: z.strictObject(modelPlaceShape).optional(),
  /** Default: trainer.optimizer. */
  optimizer: optimizer.optional(),
  /** Default: trainer.epochs. */
  epochs: z.number().int().min(1).max(64).optional(),
  /** Default: trainer.minibatches. */
  minibatches: z.number().int().min(1).max(1_024).optional(),
  /** Earlier versions of a trained policy, which are played and not trained. Absent = it is trained. */
  earlier: earlier.optional(),
});

export const policiesSchema = z
  .record(z.string().regex(POLICY_NAME, "a name of a-z, 0-9 and -, at most 32 characters"), policy)
  .refine((all) => Object.keys(all).length <= MAX_POLICIES, `at most ${MAX_POLICIES} policies`);

const role = z.strictObject({
  /** The policy that answers its calls and learns from them. Default: the run's own. */
  policy: z.string().regex(POLICY_NAME, "the name of a policy").optional(),
});

export const rolesSchema = z
  .record(z.string().regex(ROLE_NAME, "a name of a-z, 0-9, _ and -"), role)
  .refine((all) => Object.keys(all).length <= MAX_ROLES, `at most ${MAX_ROLES} roles`);

export type PolicyConfig = z.output<typeof policy>;
export type EarlierConfig = z.output<typeof earlier>;

interface WithPolicies {
  readonly policies?: Readonly<Record<string, PolicyConfig>> | undefined;
  readonly roles?: z.output<typeof rolesSchema> | undefined;
}

/** The run's further policies that are trained, in the order of the file. */
export function learningPolicies({
  policies = {},
}: WithPolicies): (PolicyConfig & { readonly name: string })[] {
  return Object.entries(policies)
    .filter(([, { earlier: versions }]) => versions === undefined)
    .map(([name, each]) => ({ ...each, name }));
}

/** The policies that are earlier versions of others, in the order of the file. */
export function earlierPolicies({
  policies = {},
}: WithPolicies): (EarlierConfig & { readonly name: string })[] {
  return Object.entries(policies).flatMap(([name, { earlier: versions }]) =>
    versions === undefined ? [] : [{ ...versions, name }],
  );
}

/** @returns the name of the policy that plays a role; undefined = the run's own. */
export function policyOfRole({ roles }: WithPolicies, name: string): string | undefined {
  return roles?.[name]?.policy;
}

/** The name of a further policy's model in {@link otherModels}. */
export function policyModelName(name: string): string {
  return `policy-${name}`;
}
