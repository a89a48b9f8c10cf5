/**
 * The advantage algorithms, which a run file names.
 *
 * Adding one: a file in one of the folders beside this one, and its name in `ALGORITHMS`. See docs/extending.md.
 */

import { z } from "zod";
import type { AdvantageAlgorithm, RewardedGroup, StepAdvantages } from "./advantage.ts";
import { gdpo } from "./group/gdpo.ts";
import { gpg } from "./group/gpg.ts";
import { grpo } from "./group/grpo.ts";
import { grpoPassk } from "./group/grpo-passk.ts";
import { opo } from "./group/opo.ts";
import { rloo } from "./group/rloo.ts";
import { callUserAdvantage, moduleAdvantage, type UserAdvantage } from "./module.ts";
import { type ShapeOptions, shapeAdvantages, shapeOfEvery } from "./shape-advantages.ts";
import { gae } from "./token/gae.ts";
import { optimalTokenBaseline } from "./token/optimal-token-baseline.ts";
import { reinforce } from "./token/reinforce.ts";
import { reinforcePlusPlus } from "./token/reinforce-plus-plus.ts";
import { reinforcePlusPlusBaseline } from "./token/reinforce-plus-plus-baseline.ts";
import { remax } from "./token/remax.ts";
import { tirOptimalTokenBaseline } from "./token/tir-optimal-token-baseline.ts";
import { agenticReinforce } from "./turn/agentic-reinforce.ts";
import { gigpo } from "./turn/gigpo.ts";
import { stepReinforce } from "./turn/step-reinforce.ts";

const ALGORITHMS = {
  grpo,
  grpo_passk: grpoPassk,
  gdpo,
  rloo,
  opo,
  gpg,
  reinforce,
  reinforce_plus_plus: reinforcePlusPlus,
  reinforce_plus_plus_baseline: reinforcePlusPlusBaseline,
  remax,
  gae,
  optimal_token_baseline: optimalTokenBaseline,
  tir_optimal_token_baseline: tirOptimalTokenBaseline,
  gigpo,
  step_reinforce: stepReinforce,
  agentic_reinforce: agenticReinforce,
  module: moduleAdvantage,
} as const;

type AnyAlgorithm = (typeof ALGORITHMS)[keyof typeof ALGORITHMS];
type SchemaOf<A> = A extends { readonly kind: infer Kind extends string; readonly options: infer Options }
  ? z.ZodObject<{ kind: z.ZodLiteral<Kind> } & Options & ReturnType<typeof shapeOfEvery>, z.core.$strict>
  : never;

const schemas = Object.values(ALGORITHMS).map(({ kind, options, ...algorithm }) =>
  z.strictObject({
    kind: z.literal(kind),
    ...options,
    ...shapeOfEvery("whitens" in algorithm ? algorithm.whitens : false),
  }),
);

/** `algorithm.advantage` of a run file. */
export const advantageSchema = z
  .discriminatedUnion("kind", schemas as unknown as readonly [SchemaOf<AnyAlgorithm>])
  .prefault({ kind: "grpo" });

/** The chosen algorithm with its options. */
export type AdvantageConfig = z.output<typeof advantageSchema>;

/**
 * The advantages of a step by the algorithm that `config.kind` names.
 * @param own the function of the user's module, for the kind `module`.
 * @throws {UserAdvantageError} when that function fails or returns what cannot be trained on.
 */
export function computeAdvantages(
  step: readonly RewardedGroup[],
  config: AdvantageConfig,
  own?: UserAdvantage,
): StepAdvantages {
  return shapeAdvantages(step, makeAdvantages(step, config, own), config);
}

/** The same before they are whitened and clipped. */
export function makeAdvantages(
  step: readonly RewardedGroup[],
  config: AdvantageConfig,
  own?: UserAdvantage,
): StepAdvantages {
  return config.kind === "module" && own !== undefined
    ? callUserAdvantage(step, config, own)
    : algorithmOf(config).compute(step, config);
}

/** Whether the chosen algorithm compares the rollouts of a group, so that groups of one would teach nothing. */
export function comparesGroup(config: AdvantageConfig): boolean {
  return algorithmOf(config).comparesGroup;
}

/** Whether the chosen algorithm compares with one more rollout of each task, played with the most likely tokens. */
export function playsBaseline(config: AdvantageConfig): boolean {
  return algorithmOf(config).playsBaseline ?? false;
}

/** Whether the chosen algorithm compares with the values of a critic. */
export function readsValues(config: AdvantageConfig): boolean {
  return algorithmOf(config).readsValues ?? false;
}

/** Whether the chosen algorithm reads the sums of squared probabilities. */
export function readsSquares(config: AdvantageConfig): boolean {
  return algorithmOf(config).readsSquares ?? false;
}

/** The key of `algorithm.advantage` that asks for rewards of turns; undefined = none does. */
export function turnRewardKey(config: AdvantageConfig): string | undefined {
  return algorithmOf(config).turnKey?.(config);
}

/** Whether the chosen algorithm reads the episode's reward. */
export function readsReward(config: AdvantageConfig): boolean {
  return algorithmOf(config).readsReward?.(config) ?? true;
}

/** The schema holds options and kind together, which the type of a table cannot say. */
function algorithmOf({ kind }: AdvantageConfig): Omit<
  AdvantageAlgorithm<string, never>,
  "compute" | "readsReward" | "turnKey"
> & {
  compute(step: readonly RewardedGroup[], options: ShapeOptions): StepAdvantages;
  readsReward?(options: ShapeOptions): boolean;
  turnKey?(options: ShapeOptions): string | undefined;
} {
  return ALGORITHMS[kind] as never;
}
