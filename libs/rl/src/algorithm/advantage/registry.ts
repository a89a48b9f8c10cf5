/**
 * The advantage algorithms that a run file can name.
 *
 * Adding one: a file beside this one, and its name in `ALGORITHMS`. See docs/extending.md.
 */

import { z } from "zod";
import type { RewardedGroup, StepAdvantages } from "./advantage.ts";
import { grpo } from "./grpo.ts";

const ALGORITHMS = { grpo } as const;

type AnyAlgorithm = (typeof ALGORITHMS)[keyof typeof ALGORITHMS];
type SchemaOf<A> = A extends { readonly kind: infer Kind extends string; readonly options: infer Options }
  ? z.ZodObject<{ kind: z.ZodLiteral<Kind> } & Options, z.core.$strict>
  : never;

const schemas = Object.values(ALGORITHMS).map(({ kind, options }) =>
  z.strictObject({ kind: z.literal(kind), ...options }),
);

/** `algorithm.advantage` of a run file. */
export const advantageSchema = z
  .discriminatedUnion("kind", schemas as unknown as readonly [SchemaOf<AnyAlgorithm>])
  .prefault({ kind: "grpo" });

/** The chosen algorithm with its options. */
export type AdvantageConfig = z.output<typeof advantageSchema>;

/** The advantages of a step by the algorithm that `config.kind` names. */
export function computeAdvantages(step: readonly RewardedGroup[], config: AdvantageConfig): StepAdvantages {
  // The schema holds options and kind together, which the type of a table cannot say.
  const { compute } = ALGORITHMS[config.kind] as unknown as {
    compute(step: readonly RewardedGroup[], options: AdvantageConfig): StepAdvantages;
  };
  return compute(step, config);
}
