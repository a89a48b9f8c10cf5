/**
 * An advantage algorithm of the user, from a module:
 *
 *     export function computeAdvantages(step, options) {
 *       return { groups: step.map(({ rollouts }) => rollouts.map(({ reward }) => ({ advantage: reward - 0.5 }))) };
 *     }
 *
 * It gets what the algorithms of this folder get, and returns what they return (advantage.ts). It must be a pure function. The
 * trainer loads it once for each time that it takes up a run.
 */

import { TerminalError } from "@hone/core";
import { z } from "zod";
import { rolloutTokenCount } from "../../rollout.ts";
import {
  type AdvantageAlgorithm,
  defineAdvantage,
  type RewardedGroup,
  type RewardedRollout,
  type StepAdvantages,
} from "./advantage.ts";

/** The function that a user's module exports. */
export type UserAdvantage = (
  step: readonly RewardedGroup[],
  options: Readonly<Record<string, unknown>>,
) => unknown;

/** The name under which a module exports it. */
export const USER_ADVANTAGE_EXPORT = "computeAdvantages";

/** A user's advantage algorithm failed, or what it returned cannot be trained on. */
export class UserAdvantageError extends TerminalError {
  constructor(message: string, options?: ErrorOptions) {
    super("USER_ADVANTAGE", message, options);
  }
}

const options = {
  /** The module's file. */
  path: z.string().min(1),
  /** What the function gets as its second argument. */
  options: z.record(z.string(), z.unknown()).default({}),
};

export const moduleAdvantage = defineAdvantage({
  kind: "module",
  options,
  // What the function compares is not known, and groups of one may suit it.
  comparesGroup: false,
  compute: () => {
    throw new TypeError("computeAdvantages() was called without the function of the user's module");
  },
}) satisfies AdvantageAlgorithm<"module", typeof options>;

/**
 * Calls a user's function, and checks all that it returns.
 * @throws {UserAdvantageError} when it throws, or returns anything but one finite advantage for each rollout, turn or token.
 */
export function callUserAdvantage(
  step: readonly RewardedGroup[],
  config: { readonly path: string; readonly options: Readonly<Record<string, unknown>> },
  compute: UserAdvantage,
): StepAdvantages {
  const name = `${USER_ADVANTAGE_EXPORT} of ${config.path}`;
  let returned: unknown;
  try {
    returned = compute(step, config.options);
  } catch (cause) {
    throw new UserAdvantageError(
      `${name} failed: ${cause instanceof Error ? cause.message : String(cause)}`,
      {
        cause,
      },
    );
  }
  const parsed = returnSchema.safeParse(returned);
  if (!parsed.success) {
    throw new UserAdvantageError(
      `${name} must return { groups, metrics? } with finite numbers: ${z.prettifyError(parsed.error)}`,
    );
  }
  const { groups, metrics } = parsed.data;
  if (groups.length !== step.length) {
    throw new UserAdvantageError(`${name} returned ${groups.length} groups for a step of ${step.length}`);
  }
  const checked = step.map(({ task, rollouts }, group) => {
    const advantages = groups[group]!;
    const place = `group ${group} (task ${task})`;
    if (advantages.length !== rollouts.length) {
      throw new UserAdvantageError(
        `${name} returned ${advantages.length} advantages for ${place}, which has ${rollouts.length} rollouts`,
      );
    }
    return rollouts.map((rollout, i) =>
      advantageOf(rollout, advantages[i]!, `${name}, rollout ${i} of ${place}`),
    );
  });
  return { groups: checked, ...(metrics !== undefined && { metrics }) };
}

const numbers = z.custom<ArrayLike<number>>(
  (value) =>
    (Array.isArray(value) || value instanceof Float64Array || value instanceof Float32Array) &&
    Array.prototype.every.call(value, (each) => typeof each === "number" && Number.isFinite(each)),
  "must be a list of finite numbers",
);
const returnSchema = z.object({
  groups: z.array(
    z.array(
      z.object({
        advantage: z.number(),
        turnAdvantages: numbers.optional(),
        tokenAdvantages: numbers.optional(),
      }),
    ),
  ),
  metrics: z.record(z.string(), z.number()).optional(),
});
type Returned = z.output<typeof returnSchema>["groups"][number][number];

function advantageOf({ rollout }: RewardedRollout, returned: Returned, place: string) {
  const { advantage, turnAdvantages, tokenAdvantages } = returned;
  const check = (what: string, found: ArrayLike<number> | undefined, wanted: number) => {
    if (found === undefined || found.length === wanted) return;
    throw new UserAdvantageError(
      `${place}: it has ${found.length} ${what} advantages and must have ${wanted}`,
    );
  };
  check("turn", turnAdvantages, rollout.turnCount);
  check("token", tokenAdvantages, rolloutTokenCount(rollout));
  return {
    advantage,
    ...(turnAdvantages !== undefined && { turnAdvantages: Array.from(turnAdvantages) }),
    ...(tokenAdvantages !== undefined && { tokenAdvantages: Float64Array.from(tokenAdvantages) }),
  };
}
