/** The KL to the reference policy as a term of the loss. */

import { KlLossKind, klTerm } from "../../../kl/estimators.ts";
import { denseOf } from "../dense.ts";
import type { Question } from "../golden.ts";
import type { AskedLoss, LossRow } from "./loss-row.ts";

/** Names of the estimates in verl and ROLL; `+` makes a straight-through form. */
const ESTIMATES: Readonly<Record<string, string>> = {
  kl: "k1",
  k1: "k1",
  abs: "abs",
  mse: "k2",
  k2: "k2",
  low_var_kl: "k3",
  k3: "k3",
};

export const klLossRows: readonly LossRow[] = ["verl/kl-penalty", "roll/kl"].map((family) => ({
  family,
  hone: "algorithm.kl",
  leaves: { raises: "`full` needs whole distributions and is no name of ours" },
  ask: family === "roll/kl" ? askRoll : askVerl,
}));

function askVerl(question: Question): AskedLoss | undefined {
  const logprob = question.matrix("logprob");
  const reference = question.matrix("ref_logprob");
  return ask(
    question,
    logprob,
    reference,
    logprob.map((row) => row.map(() => 1)),
  );
}

function askRoll(question: Question): AskedLoss | undefined {
  const [logprob, reference] = [question.matrix("log_probs"), question.matrix("log_probs_base")];
  return ask(
    question,
    logprob,
    reference,
    question.matrix("action_mask").map((row) => [...row]),
  );
}

function ask(
  question: Question,
  logprob: readonly (readonly number[])[],
  reference: readonly (readonly number[])[],
  mask: number[][],
): AskedLoss | undefined {
  const [name, through] = question.text("kl_penalty").split("+");
  const estimate = ESTIMATES[name!];
  if (estimate === undefined) return undefined;
  // The straight-through form of k2 is k2 itself.
  const wanted = through === undefined || estimate === "k2" ? estimate : `${estimate}+`;
  const kind = Object.values(KlLossKind).find((each) => each === wanted)!;
  const pick = (values: readonly (readonly number[])[]) =>
    values.flatMap((row, i) => row.filter((_, t) => mask[i]![t] === 1));
  const logprobs = pick(logprob);
  return {
    task: {
      terms: [klTerm({ kind, coefficient: 1 })!],
      scores: logprobs,
      inputs: { referenceLogprob: pick(reference) },
      weights: logprobs.map(() => 1),
    },
    check: ({ loss, gradient }) => [
      {
        field: "penalty",
        actual: loss,
        expected: question
          .expected("penalty")
          .flat()
          .reduce((sum, each) => sum + each, 0),
      },
      { field: "gradient_of_sum", actual: denseOf(mask, gradient) },
    ],
  };
}
