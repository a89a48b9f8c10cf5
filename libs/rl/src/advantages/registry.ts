/**
 * Advantage algorithms by the `kind` of their configuration.
 *
 * Adding one: a file beside this one with its config type and its function, an entry in both types below.
 */

import { type GrpoConfig, grpoAdvantages } from "./grpo.ts";

/** Turns the rewards of one group, in order of index, into one advantage each. */
export type Advantages<C> = (rewards: readonly number[], config: C) => number[];

/** Configuration of the chosen algorithm. */
export type AdvantageConfig = GrpoConfig;

const ALGORITHMS: {
  readonly [K in AdvantageConfig["kind"]]: Advantages<Extract<AdvantageConfig, { kind: K }>>;
} = {
  grpo: grpoAdvantages,
};

/** Advantages of one group by the algorithm that `config.kind` names. */
export function advantagesOf(rewards: readonly number[], config: AdvantageConfig): number[] {
  return ALGORITHMS[config.kind](rewards, config);
}
