/**
 * The losses that engines compute, and those of them that a run file can name.
 *
 * Adding one: a file beside this one and its name in `POLICY_LOSSES`; its formula for each engine, whose tables are typed over
 * {@link LOSSES}. See docs/extending.md.
 */

import { z } from "zod";
import { klLosses } from "../kl/estimators.ts";
import { Aggregation } from "./aggregation.ts";
import { crossEntropy } from "./cross-entropy.ts";
import type { LossConstants, LossTerm, PolicyLoss, TokenInput } from "./loss.ts";
import { ppoClip } from "./ppo-clip.ts";

/** Losses of `algorithm.loss`. */
const POLICY_LOSSES = { ppo_clip: ppoClip } as const;

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
  aggregate: z.enum(Aggregation).default(Aggregation.tokenMean),
  /** Weight of the entropy bonus. */
  entropy: z.number().min(0).default(0),
};

type AnyLoss = (typeof POLICY_LOSSES)[keyof typeof POLICY_LOSSES];
type SchemaOf<L> = L extends { readonly name: infer Name extends string; readonly options: infer Options }
  ? z.ZodObject<{ kind: z.ZodLiteral<Name> } & Options & typeof ofEveryLoss, z.core.$strict>
  : never;

const schemas = Object.values(POLICY_LOSSES).map(({ name, options }) =>
  z.strictObject({ kind: z.literal(name), ...options, ...ofEveryLoss }),
);

/** `algorithm.loss` of a run file. */
export const lossSchema = z
  .discriminatedUnion("kind", schemas as unknown as readonly [SchemaOf<AnyLoss>])
  .prefault({ kind: "ppo_clip" });

/** The chosen loss with its options. */
export type LossConfig = z.output<typeof lossSchema>;

/** The chosen loss with its constants; which of the losses it is plays no part for the caller. */
export function chosenLoss(config: LossConfig): {
  readonly term: LossTerm<LossName>;
  isClipped(ratio: number, advantage: number): boolean;
} {
  // The schema holds options and kind together, which the type of a table cannot say.
  const loss = POLICY_LOSSES[config.kind] as unknown as PolicyLoss<LossName> & {
    constantsOf(options: LossConfig): LossConstants;
  };
  const constants = loss.constantsOf(config);
  return {
    term: { name: loss.name, constants },
    isClipped: (ratio, advantage) => loss.isClipped(ratio, advantage, constants),
  };
}

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
