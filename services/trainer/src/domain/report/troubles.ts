/**
 * Looks at gathered rollouts before they are used: what went wrong in them is published, and where all failed for one
 * reason the run stops.
 *
 * U1: the decision depends on the stored episodes alone, so a trainer that takes the run over at this moment decides the same.
 */

import { type Rollout, troublesOf, uniformFailureOf } from "@hone/rl";
import { UniformFailureError } from "../errors.ts";
import type { RunContext } from "../run/run-context.ts";
import type { GatheredTroubles } from "./run-status.ts";

/**
 * @param madeFor such as "step 3".
 * @returns what went wrong; undefined where nothing did.
 * @throws {UniformFailureError} where all failed for one reason, and the run file does not allow such rollouts.
 */
export function reportTroubles(
  { run, reporter }: Pick<RunContext, "run" | "reporter">,
  madeFor: string,
  rollouts: readonly Rollout[],
): GatheredTroubles | undefined {
  const troubles = gatheredTroubles(madeFor, rollouts);
  reporter.troubles(troubles);
  if (run.config.rollout.onUniformFailure === "continue") return troubles;
  const failure = uniformFailureOf(rollouts);
  if (failure !== undefined) throw new UniformFailureError(madeFor, failure);
  return troubles;
}

/** What went wrong, without publishing it. */
export function gatheredTroubles(
  madeFor: string,
  rollouts: readonly Rollout[],
): GatheredTroubles | undefined {
  const troubles = troublesOf(rollouts);
  return troubles && { madeFor, ...troubles };
}
