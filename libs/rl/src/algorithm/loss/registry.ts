/**
 * The losses that engines compute, and those of them that a run file can name.
 *
 * `token/` holds those in which each token stands for itself, `sequence/` those that take the tokens of a sample together, and
 * `selected/` those that choose tokens from the whole minibatch. Adding one: a file there and its name in `POLICY_LOSSES`;
 * its formula for each engine, whose tables are typed over {@link LOSSES}. See docs/extending.md.
 */

import { z } from "zod";
import { klLosses } from "../kl/estimators.ts";
import { Aggregation } from "./aggregation.ts";
import { crossEntropy } from "./cross-entropy.ts";
import {
  type Expression,
  expressionProblem,
  inputsOfExpression,
  trainsWithoutAdvantage,
} from "./expression.ts";
import type { LossConstants, LossTerm, PolicyLoss, ScoredTokens, TokenFigures, TokenLoss } from "./loss.ts";
import { moduleLoss } from "./module.ts";
import { clipCov } from "./selected/clip-cov.ts";
import { klCov } from "./selected/kl-cov.ts";
import { gmpo } from "./sequence/gmpo.ts";
import { gspo } from "./sequence/gspo.ts";
import { cispo } from "./token/cispo.ts";
import { dppoKl } from "./token/dppo-kl.ts";
import { dppoTv } from "./token/dppo-tv.ts";
import { dro } from "./token/dro.ts";
import { gpg } from "./token/gpg.ts";
import { kimi15 } from "./token/kimi15.ts";
import { ppoClip } from "./token/ppo-clip.ts";
import { reinforce } from "./token/reinforce.ts";
import { sapo } from "./token/sapo.ts";
import { tis } from "./token/tis.ts";
import { topr } from "./token/topr.ts";
import { TokenCut } from "./token-cut.ts";
import { type GroupInput, HeadScore, isGroupInput, type TokenInput } from "./token-numbers.ts";
import { valueLoss } from "./value.ts";

/** Losses of `algorithm.loss`. */
export const POLICY_LOSSES = {
  ppo_clip: ppoClip,
  gspo,
  gmpo,
  sapo,
  cispo,
  dppo_tv: dppoTv,
  dppo_kl: dppoKl,
  dro,
  gpg,
  clip_cov: clipCov,
  kl_cov: klCov,
  topr,
  tis,
  kimi15,
  reinforce,
  module: moduleLoss,
} as const;

/** Losses of a critic's values. */
const VALUE_LOSSES = { value: valueLoss } as const;

/** Everything that an engine computes for a token. */
export const LOSSES = {
  ...POLICY_LOSSES,
  cross_entropy: crossEntropy,
  ...klLosses,
  ...VALUE_LOSSES,
} as const;

export type LossName = keyof typeof LOSSES;
/** What a loss is a function of. */
export type ScoreOf<N extends LossName> = N extends keyof typeof VALUE_LOSSES ? "value" : "logprob";
/** The constants of a loss. */
export type ConstantsOf<N extends LossName> = z.output<(typeof LOSSES)[N]["constants"]>;
/** The numbers of a token that it reads. */
export type InputsOf<N extends LossName> = (typeof LOSSES)[N]["reads"][number];

/** Keys of every loss. @param aggregate the default */
const ofEveryLoss = (aggregate: Aggregation) => ({
  /** How token losses become one number. */
  aggregate: z.enum(Aggregation).default(aggregate),
  /** Weight of the entropy bonus. */
  entropy: z.number().min(0).default(0),
});

type AnyLoss = (typeof POLICY_LOSSES)[keyof typeof POLICY_LOSSES];
type SchemaOf<L> = L extends { readonly name: infer Name extends string; readonly options: infer Options }
  ? z.ZodObject<{ kind: z.ZodLiteral<Name> } & Options & ReturnType<typeof ofEveryLoss>, z.core.$strict>
  : never;

const schemas = Object.values<PolicyLoss<LossName>>(POLICY_LOSSES as never).map(
  ({ name, options, aggregate = Aggregation.tokenMean }) =>
    z.strictObject({ kind: z.literal(name), ...options, ...ofEveryLoss(aggregate) }),
);

/** `algorithm.loss` of a run file. */
export const lossSchema = z
  .discriminatedUnion("kind", schemas as unknown as readonly [SchemaOf<AnyLoss>])
  .prefault({ kind: "ppo_clip" });

/** The chosen loss with its options. */
export type LossConfig = z.output<typeof lossSchema>;

/** The loss of a run. */
export interface ChosenLoss {
  readonly term: LossTerm<LossName>;
  /** Whether a token has a gradient also where its advantage is 0. */
  readonly trainsWithoutAdvantage: boolean;
  /** Which tokens it takes together; undefined = each stands for itself. */
  readonly group: GroupInput | undefined;
  /** What holds a token back or bounds its weight. */
  cut(token: TokenFigures): TokenCut;
  /** Chooses from all tokens of a minibatch, [N]; undefined = nothing is chosen, and no scores are needed before an update. */
  readonly select: ((tokens: ScoredTokens) => readonly boolean[]) | undefined;
}

/**
 * The chosen loss with its constants; which of the losses it is plays no part for the caller.
 * @param own what the user's module made, for the kind `module`.
 */
export function chosenLoss(config: LossConfig, own?: Expression): ChosenLoss {
  if ((config.kind === "module") !== (own !== undefined)) {
    throw new TypeError("an expression belongs to a loss of the user's, and to no other");
  }
  // The schema holds options and kind together, which the type of a table cannot say.
  const loss = POLICY_LOSSES[config.kind] as unknown as PolicyLoss<LossName> & {
    constantsOf(options: LossConfig): LossConstants;
  };
  const constants = loss.constantsOf(config);
  const { select } = loss;
  return {
    term: { name: loss.name, constants, ...(own !== undefined && { expression: own }) },
    trainsWithoutAdvantage:
      own === undefined ? (loss.trainsWithoutAdvantage ?? false) : trainsWithoutAdvantage(own),
    group: loss.groupedBy?.(constants),
    cut: (token) => loss.cut?.(token, constants) ?? TokenCut.none,
    select: select && ((tokens) => select(tokens, constants)),
  };
}

/** What a loss is a function of. */
export function scoreOf(name: LossName): HeadScore {
  return Object.hasOwn(VALUE_LOSSES, name) ? HeadScore.value : HeadScore.logprob;
}

/** The numbers of a token that terms read, each once. */
export function inputsOf(terms: readonly LossTerm<LossName>[]): TokenInput[] {
  return [...new Set(terms.flatMap(inputsOfTerm))];
}

function inputsOfTerm({ name, constants, expression }: LossTerm<LossName>): readonly TokenInput[] {
  if (expression !== undefined) {
    return inputsOfExpression(expression).filter((input) => input !== HeadScore.logprob);
  }
  const loss = LOSSES[name] as unknown as TokenLoss<LossName, TokenInput, LossConstants>;
  const group = loss.groupedBy?.(constants);
  return group === undefined ? loss.reads : [...loss.reads, group];
}

/** Whether terms take tokens together, so that the loss of a token needs those of others. */
export function takesTogether(terms: readonly LossTerm<LossName>[]): boolean {
  return inputsOf(terms).some(isGroupInput);
}

/** Why an engine cannot compute a term; undefined = it can. */
export function termProblem({ name, constants, expression }: LossTerm): string | undefined {
  if (!Object.hasOwn(LOSSES, name))
    return `the loss "${name}" is unknown; known are ${Object.keys(LOSSES).join(", ")}`;
  if ((name === "module") !== (expression !== undefined)) {
    return `the loss "${name}" must ${name === "module" ? "" : "not "}have an expression`;
  }
  const problem = expression === undefined ? undefined : expressionProblem(expression);
  if (problem !== undefined) return `the expression of the loss is wrong: ${problem}`;
  const parsed = LOSSES[name as LossName].constants.safeParse(constants);
  if (parsed.success) return undefined;
  const [issue] = parsed.error.issues;
  return `the loss "${name}" has the constants ${JSON.stringify(constants)}: ${issue?.path.join(".") ?? ""} ${issue?.message ?? ""}`;
}
