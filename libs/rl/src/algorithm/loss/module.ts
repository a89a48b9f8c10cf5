/**
 * A loss of the user, from a module:
 *
 *     export function tokenLoss({ logprob, behaviourLogprob, advantage }, { clip }) {
 *       const ratio = logprob.minus(behaviourLogprob).exp();
 *       return ratio.times(advantage).min(ratio.clip(1 - clip, 1 + clip).times(advantage)).negated();
 *     }
 *
 * The function is called once for each time that the trainer takes up a run. What it returns is an expression
 * (expression.ts), which every engine computes and differentiates.
 */

import { TerminalError } from "@hone/core";
import { z } from "zod";
import {
  type Expression,
  expressionProblem,
  inputsOfExpression,
  TokenNumber,
  tokenNumbers,
} from "./expression.ts";
import { definePolicyLoss } from "./loss.ts";
import { HeadScore } from "./token-numbers.ts";

/** The function that a user's module exports. */
export type UserLoss = (
  numbers: ReturnType<typeof tokenNumbers>,
  options: Readonly<Record<string, unknown>>,
) => unknown;

/** The name under which a module exports it. */
export const USER_LOSS_EXPORT = "tokenLoss";

/** A user's loss failed, or what it returned cannot be trained on. */
export class UserLossError extends TerminalError {
  constructor(message: string, options?: ErrorOptions) {
    super("USER_LOSS", message, options);
  }
}

export const moduleLoss = definePolicyLoss({
  name: "module",
  options: {
    /** The module's file. */
    path: z.string().min(1),
    /** What the function gets as its second argument. */
    options: z.record(z.string(), z.unknown()).default({}),
  },
  // What its expression reads is known once it is made.
  reads: [],
  constants: z.strictObject({}),
  constantsOf: () => ({}),
  // The slope of an expression is found from its operations (slopes.ts).
  slope: () => Number.NaN,
});

/**
 * Calls a user's function.
 * @throws {UserLossError} when it throws, or returns anything but an expression that depends on the token's log-probability.
 */
export function expressionOf(
  { path, options }: { readonly path: string; readonly options: Readonly<Record<string, unknown>> },
  make: UserLoss,
): Expression {
  const name = `${USER_LOSS_EXPORT} of ${path}`;
  let made: unknown;
  try {
    made = make(tokenNumbers(), options);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new UserLossError(`${name} failed: ${reason}`, { cause });
  }
  if (!(made instanceof TokenNumber)) {
    throw new UserLossError(`${name} must return what the methods of the numbers that it gets make of them`);
  }
  const problem = expressionProblem(made.expression);
  if (problem !== undefined)
    throw new UserLossError(`${name} returned a loss that engines cannot compute: ${problem}`);
  if (inputsOfExpression(made.expression).includes(HeadScore.logprob)) return made.expression;
  throw new UserLossError(`${name} returned a loss without logprob, which nothing would be trained on`);
}
