/** Rollouts, scorers, rewards, advantages, loss weights, minibatches and metrics: pure, no tensors, no services. */

export type { GrpoConfig } from "./advantages/grpo.ts";
export type { AdvantageConfig } from "./advantages/registry.ts";
export { advantagesOf } from "./advantages/registry.ts";
export type { TurnRewardConfig } from "./advantages/turn-advantages.ts";
export type { Credit, CreditedGroup, CreditedRollout } from "./credit.ts";
export { assignCredit, hasAdvantage, tokenAdvantages } from "./credit.ts";
export { type CurriculumConfig, successOf, TaskHistory, type TaskVisit } from "./curriculum.ts";
export { BrokenRecordError } from "./errors.ts";
export { Aggregation, lossWeights } from "./loss-weights.ts";
export { addEvaluationMetrics, type PassRule, passAtK } from "./metrics/evaluation-metrics.ts";
export { MetricSet, Reduction } from "./metrics/reduction.ts";
export { addRolloutMetrics } from "./metrics/rollout-metrics.ts";
export { splitMinibatches } from "./minibatches.ts";
export type { PackedBatch, PackOptions } from "./packing/pack.ts";
export { packSamples } from "./packing/pack.ts";
export type { PackableSample } from "./packing/prefix-tree.ts";
export type { OutcomeRule, OutcomeRules } from "./rewards.ts";
export { rewardOf, turnRewardsOf, weightedSum } from "./rewards.ts";
export type { Group, Rollout, Sample, Score, TurnReward, TurnSpan, VersionSpan } from "./rollout.ts";
export { checkSample, rolloutTokenCount, sampledTokenCount, versionRange } from "./rollout.ts";
export { lastBoxed } from "./scorers/boxed.ts";
export { Gsm8kMethod, gsm8kAnswer, scoreGsm8k } from "./scorers/gsm8k.ts";
export { isSameAnswer, normalizeMath, scoreMath } from "./scorers/math.ts";
export { type DapoScore, normalizeFinalAnswer, scoreMathDapo } from "./scorers/math-dapo.ts";
export { TurnInfo } from "./turn-info.ts";
