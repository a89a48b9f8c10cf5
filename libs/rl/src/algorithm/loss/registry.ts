/**
 * The losses that engines compute, and those of them that a run file can name.
 *
 * Adding one: a file beside this one, and its name in the lists below; its formula for each engine, whose tables are typed over
 * {@link LOSSES}. See docs/extending.md.
 */

import { z } from "zod";
import { klLosses } from "../kl/estimators.ts";
import { Aggregation } from "./aggregation.ts";
import { crossEntropy } from "./cross-entropy.ts";
import type { LossTerm, PolicyLoss, TokenInput } from "./loss.ts";
import { ppoClip } from "./ppo-clip.ts";

/** Losses of `algorithm.loss`. */
export const POLICY_LOSSES = { ppo_clip: ppoClip } as const;

/** Everything that an engine computes for a token. */
export const LOSSES = { ...POLICY_LOSSES, cross_entropy: crossEntropy, ...klLosses } as const;

export type LossName = keyof typeof LOSSES;
/** The constants of a loss. */
export type ConstantsOf<N extends LossName> = z.output<(typeof LOSSES)[N]["constants"]>;
/** The numbers of a token that it reads. */
export type InputsOf<N extends LossName> = (typeof LOSSES)[N]["reads"][number];

/** Keys of every loss. */
const ofEveryLoss = {
  /** How token losses become one number. */
  aggregate: z
    .enum([
      Aggregation.tokenMean,
      Aggregation.seqMeanTokenSum,
      Aggregation.seqMeanTokenMean,
      Aggregation.seqMeanTokenSumNorm,
    ])
    .default(Aggregation.tokenMean),
  /** Weight of the entropy bonus. */
  entropy: z.number().min(0).default(0),
};

function schemaOf<const Name extends string, Options extends z.ZodRawShape>({
  name,
  options,
}: Pick<PolicyLoss<Name, never, never, Options>, "name" | "options">) {
  return z.strictObject({ kind: z.literal(name), ...options, ...ofEveryLoss });
}

/** `algorithm.loss` of a run file. */
export const lossSchema = z
  .discriminatedUnion("kind", [schemaOf(POLICY_LOSSES.ppo_clip)])
  .prefault({ kind: "ppo_clip" });

/** The chosen loss with its options. */
export type LossConfig = z.output<typeof lossSchema>;

/** The numbers of a token that terms read, each once. */
export function inputsOf(terms: readonly LossTerm<LossName>[]): TokenInput[] {
  return [...new Set(terms.flatMap(({ name }): readonly TokenInput[] => LOSSES[name].reads))];
}

/** Why an engine cannot compute a term; undefined = it can. */
export function termProblem({ name, constants }: LossTerm): string | undefined {
  if (!Object.hasOwn(LOSSES, name))
    return `the loss "${name}" is unknown; known are ${Object.keys(LOSSES).join(", ")}`;
  const parsed = LOSSES[name as LossName].constants.safeParse(constants);
  if (parsed.success) return undefined;
  const [issue] = parsed.error.issues;
  return `the loss "${name}" has the constants ${JSON.stringify(constants)}: ${issue?.path.join(".") ?? ""} ${issue?.message ?? ""}`;
}
