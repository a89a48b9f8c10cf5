/**
 * What an advantage algorithm is: options, and a pure function from the rewards of a step to the advantages of its tokens.
 *
 * A file in one of the folders beside this one holds one algorithm: `group/` those that compare the rollouts of a task,
 * `token/` those that follow rewards from token to token, `turn/` those that do so from turn to turn. `registry.ts` lists
 * them.
 */

import type { z } from "zod";
import type { Rollout } from "../../rollout.ts";

/** What one judge gave a rollout. The sum of weight x value is what the judges think it worth. */
export interface RewardComponent {
  readonly name: string;
  readonly weight: number;
  readonly value: number;
}

/** A rollout that is trained, with what it earned. N sampled tokens over its samples. */
export interface RewardedRollout {
  readonly rollout: Rollout;
  /** The reward of the whole episode, as the run file shapes it. */
  readonly reward: number;
  /** What the run takes off for the rollout's length, a part of `reward`; 0 or less. @default 0 */
  readonly penalty?: number;
  /** [N] what the run adds to the reward of single tokens, a part of `reward` too; absent = nothing. */
  readonly tokenRewards?: ArrayLike<number>;
  /** [turnCount] the reward of each turn; undefined where no judge rewards turns or the rollout's scores do not count. */
  readonly turnRewards: readonly number[] | undefined;
  /** What each judge gave; absent or undefined where the outcome is worth a fixed reward. */
  readonly components?: readonly RewardComponent[] | undefined;
  /** [N] what a critic expected at each token; absent = there is no critic. */
  readonly values?: ArrayLike<number> | undefined;
  /** [N] the sum of p^2 over the vocabulary where each token was sampled; absent = it was not computed. */
  readonly sumsOfSquares?: ArrayLike<number> | undefined;
}

/** The trained rollouts of one task, in order of their index; at least one. */
export interface RewardedGroup {
  /** Index of the task within the batch. */
  readonly task: number;
  /** The environment or data source that the task is of; absent = all tasks are of one. */
  readonly source?: string;
  readonly rollouts: readonly RewardedRollout[];
  /** The reward of the task's baseline rollout; absent = none was played. */
  readonly baselineReward?: number;
}

/** A number of each token, [N], or one for all. */
export type OfTokens = number | Float64Array;

/** The parts of which an advantage was made, as its algorithm states them (parts.ts). N sampled tokens, sample by sample. */
export interface AdvantageParts {
  /** What was taken off the reward or the return: a group's mean, a baseline, what a critic expected. Absent = not one number. */
  readonly mean?: OfTokens;
  /** By what the difference was divided. Absent = not one number. */
  readonly scale?: number;
  /** Part of the rewards of turns. @default 0 */
  readonly turns?: OfTokens;
  /** Part of the KL in the reward (`algorithm.reward.kl`). @default 0 */
  readonly kl?: OfTokens;
}

/** What the tokens of one rollout are worth. */
export interface RolloutAdvantage {
  /** One number for the rollout; that of every sampled token where no finer ones are given. */
  readonly advantage: number;
  /** [turnCount] the advantage of each turn's tokens. */
  readonly turnAdvantages?: readonly number[];
  /** [N] the advantage of each sampled token, sample by sample; goes before `turnAdvantages`. */
  readonly tokenAdvantages?: Float64Array;
  /** [N] what a critic is to predict at each sampled token, sample by sample; absent = the algorithm reads no values. */
  readonly returns?: Float64Array;
  /** How it was made, for the record of trained tokens; absent = it is not known, as of a module of the user. */
  readonly parts?: AdvantageParts;
}

/** What was done with the advantages of a step after they were made. */
export interface AdvantageShaping {
  /** Mean and scale of the whitening; absent = they were not whitened. */
  readonly whitening?: { readonly mean: number; readonly scale: number };
  /** Largest advantage that was left, without its sign; absent = they were not clipped. */
  readonly clip?: number;
}

/** The advantages of a step. */
export interface StepAdvantages {
  /** For each group, in their order, one entry per rollout, in their order. */
  readonly groups: readonly (readonly RolloutAdvantage[])[];
  /** Figures of the algorithm's own, shown as `advantage/<name>`. */
  readonly metrics?: Readonly<Record<string, number>>;
  /** Absent = they are as the algorithm made them. */
  readonly shaping?: AdvantageShaping;
}

/** An algorithm. `Options` are its keys in `algorithm.advantage` of a run file, beside `kind` and those of every algorithm. */
export interface AdvantageAlgorithm<Kind extends string, Options extends z.ZodRawShape> {
  readonly kind: Kind;
  readonly options: Options;
  /** Whether it compares the rollouts of a group with each other, so that groups of one would teach nothing. */
  readonly comparesGroup: boolean;
  /** Whether its advantages are whitened where the run file does not say. @default false */
  readonly whitens?: boolean;
  /** Whether one more rollout of each task is played with the most likely tokens, as a baseline. @default false */
  readonly playsBaseline?: boolean;
  /** Whether it compares with the values of a critic, and says what the critic is to predict. @default false */
  readonly readsValues?: boolean;
  /** Whether it reads the sums of squared probabilities, which take one forward pass more for each step. @default false */
  readonly readsSquares?: boolean;
  /** Whether it reads the episode's reward with these options. @default true */
  readsReward?(options: z.output<z.ZodObject<Options>>): boolean;
  /** The key of `algorithm.advantage` that asks for rewards of turns; undefined = these options do not. */
  turnKey?(options: z.output<z.ZodObject<Options>>): string | undefined;
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
