/**
 * Looks at rollouts that were gathered before anything is made of them: what went wrong is told, and where all failed for
 * one reason the run stops.
 *
 * U1: what decides are the stored episodes, so a trainer that takes the run over in this moment decides the same.
 */

import { type Rollout, troublesOf, uniformFailureOf } from "@hone/rl";
import { UniformFailureError } from "../errors.ts";
import type { RunContext } from "../run/run-context.ts";
import type { GatheredTroubles } from "./run-status.ts";

/**
 * @param madeFor such as "step 3".
 * @returns what went wrong; undefined where nothing did.
 * @throws {UniformFailureError} where all failed for one reason, and the run file does not let such rollouts pass.
 */
export function tellTroubles(
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

/** What went wrong, without telling it. */
export function gatheredTroubles(
  madeFor: string,
  rollouts: readonly Rollout[],
): GatheredTroubles | undefined {
  const troubles = troublesOf(rollouts);
  return troubles && { madeFor, ...troubles };
}
