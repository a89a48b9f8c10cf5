/**
 * What an advantage algorithm is: options, and a pure function from the rewards of a step to the advantages of its tokens.
 *
 * A file beside this one holds one algorithm, `registry.ts` lists them.
 */

import type { z } from "zod";
import type { Rollout } from "../../rollout.ts";

/** A rollout that is trained, with what it earned. */
export interface RewardedRollout {
  readonly rollout: Rollout;
  /** The reward of the whole episode. */
  readonly reward: number;
  /** [turnCount] the reward of each turn; undefined where no judge rewards turns or the rollout's scores do not count. */
  readonly turnRewards: readonly number[] | undefined;
}

/** The trained rollouts of one task, in order of their index; at least one. */
export interface RewardedGroup {
  /** Index of the task within the batch. */
  readonly task: number;
  readonly rollouts: readonly RewardedRollout[];
}

/** What the tokens of one rollout are worth. */
export interface RolloutAdvantage {
  /** One number for the rollout; that of every sampled token where no finer ones are given. */
  readonly advantage: number;
  /** [turnCount] the advantage of each turn's tokens. */
  readonly turnAdvantages?: readonly number[];
  /** For each sample [N], the advantage of each of its sampled tokens; goes before `turnAdvantages`. */
  readonly tokenAdvantages?: readonly Float32Array[];
}

/** The advantages of a step. */
export interface StepAdvantages {
  /** For each group, in their order, one entry per rollout, in their order. */
  readonly groups: readonly (readonly RolloutAdvantage[])[];
  /** Figures of the algorithm's own, shown as `advantage/<name>`. */
  readonly metrics?: Readonly<Record<string, number>>;
}

/** An algorithm. `Options` are its keys in `algorithm.advantage` of a run file, beside `kind`. */
export interface AdvantageAlgorithm<Kind extends string, Options extends z.ZodRawShape> {
  readonly kind: Kind;
  readonly options: Options;
  /**
   * @param step the step's groups in order of task. Nothing in them depends on the order in which rollouts arrived, and
   *   nothing but them may set the result: a step that is replayed must get the same advantages.
   */
  compute(step: readonly RewardedGroup[], options: z.output<z.ZodObject<Options>>): StepAdvantages;
}

/** Checks an algorithm's types where it is written. */
export function defineAdvantage<const Kind extends string, Options extends z.ZodRawShape>(
  algorithm: AdvantageAlgorithm<Kind, Options>,
): AdvantageAlgorithm<Kind, Options> {
  return algorithm;
}
