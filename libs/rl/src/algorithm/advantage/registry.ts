/**
 * The advantage algorithms that a run file can name.
 *
 * Adding one: a file beside this one, and its name in the list below. See docs/extending.md.
 */

import { z } from "zod";
import type { AdvantageAlgorithm, RewardedGroup, StepAdvantages } from "./advantage.ts";
import { grpo } from "./grpo.ts";

function schemaOf<const Kind extends string, Options extends z.ZodRawShape>({
  kind,
  options,
}: AdvantageAlgorithm<Kind, Options>) {
  return z.strictObject({ kind: z.literal(kind), ...options });
}

/** `algorithm.advantage` of a run file. */
export const advantageSchema = z.discriminatedUnion("kind", [schemaOf(grpo)]).prefault({ kind: "grpo" });

/** The chosen algorithm with its options. */
export type AdvantageConfig = z.output<typeof advantageSchema>;

type AlgorithmOf<C extends AdvantageConfig> = {
  compute(step: readonly RewardedGroup[], options: C): StepAdvantages;
};

const ALGORITHMS: {
  readonly [K in AdvantageConfig["kind"]]: AlgorithmOf<Extract<AdvantageConfig, { kind: K }>>;
} = { grpo };

/** The advantages of a step by the algorithm that `config.kind` names. */
export function computeAdvantages(step: readonly RewardedGroup[], config: AdvantageConfig): StepAdvantages {
  return ALGORITHMS[config.kind].compute(step, config);
}
