/** Rollouts, algorithms with their options, scorers, rewards, minibatches and metrics: pure, no tensors, no services. */

export type {
  AdvantageAlgorithm,
  RewardedGroup,
  RewardedRollout,
  RolloutAdvantage,
  StepAdvantages,
} from "./algorithm/advantage/advantage.ts";
export { defineAdvantage } from "./algorithm/advantage/advantage.ts";
export { groupRelative } from "./algorithm/advantage/group/grpo.ts";
export {
  USER_ADVANTAGE_EXPORT,
  type UserAdvantage,
  UserAdvantageError,
} from "./algorithm/advantage/module.ts";
export { advantagesOfSample, hasAdvantage } from "./algorithm/advantage/of-tokens.ts";
export { tokensOfAdvantage } from "./algorithm/advantage/parts.ts";
export type { AdvantageConfig } from "./algorithm/advantage/registry.ts";
export {
  comparesGroup,
  computeAdvantages,
  playsBaseline,
  readsReward,
  readsSquares,
  readsValues,
  turnRewardKey,
} from "./algorithm/advantage/registry.ts";
export { type CorrectionConfig, correctTokens, OldPolicy } from "./algorithm/correction/correction.ts";
export { compareTokens } from "./algorithm/correction/tokens.ts";
export {
  type DistillationConfig,
  distillationAdvantages,
  distillationSchema,
  listOfTeachers,
  type TeacherConfig,
  type TeacherScores,
  teacherSchema,
  teaches,
} from "./algorithm/distillation/distillation.ts";
export { estimateKl, estimateOf, KlKind, KlLossKind, MAX_K3 } from "./algorithm/kl/estimators.ts";
export { Aggregation, lossWeights } from "./algorithm/loss/aggregation.ts";
export {
  buildExpression,
  type Expression,
  type ExpressionBackend,
  type ExpressionInput,
  tokenNumbers,
} from "./algorithm/loss/expression.ts";
export type { LossConstants, LossTerm, TokenFigures } from "./algorithm/loss/loss.ts";
export { expressionOf, USER_LOSS_EXPORT, type UserLoss, UserLossError } from "./algorithm/loss/module.ts";
export type { ConstantsOf, InputsOf, LossName, ScoreOf } from "./algorithm/loss/registry.ts";
export {
  inputsOf,
  LOSSES,
  POLICY_LOSSES,
  scoreOf,
  takesTogether,
  termProblem,
} from "./algorithm/loss/registry.ts";
export { MAX_SEQUENCE_LOG_RATIO } from "./algorithm/loss/sequence/gspo.ts";
export { type SlopeTokens, slopesOfTerms, tokenFigures } from "./algorithm/loss/slopes.ts";
export { KL_EPSILON } from "./algorithm/loss/token/dppo-kl.ts";
export { isCounted, TokenCut } from "./algorithm/loss/token-cut.ts";
export {
  type GroupInput,
  HeadScore,
  isGroupInput,
  MAX_LOG_RATIO,
  TokenInput,
} from "./algorithm/loss/token-numbers.ts";
export { isValueClipped, type ValueLossConfig, valueLossSchema, valueTerm } from "./algorithm/loss/value.ts";
export { IMITATION_TERMS, type PolicyObjective, policyObjective } from "./algorithm/objective.ts";
export { explainedVariance } from "./algorithm/returns.ts";
export {
  adaptKlCoefficient,
  type KlRewardOptions,
  klRewards,
  meanKl,
} from "./algorithm/reward/kl-penalty.ts";
export { groupsThatTeach, nextBatchSize } from "./algorithm/sampling/dynamic-sampling.ts";
export {
  type AlgorithmConfig,
  algorithmSchema,
  type OutcomeRule,
  type OutcomeRules,
} from "./algorithm/schema.ts";
export { meanOf } from "./algorithm/statistics.ts";
export type { Credit, CreditedGroup, CreditedRollout, CreditInputs, CreditRules } from "./credit.ts";
export { assignCredit, readsSources } from "./credit.ts";
export {
  type CandidateTask,
  type CurriculumConfig,
  curriculumSchema,
  successOf,
  TaskHistory,
  type TaskVisit,
  USER_CURRICULUM_EXPORT,
  type UserCurriculum,
  UserCurriculumError,
} from "./curriculum.ts";
export { BrokenRecordError } from "./errors.ts";
export {
  FinishReason,
  type Generation,
  MAX_QUANTIZED_TOKENS,
  OnNewVersion,
  Quantization,
  readFinishReason,
} from "./generation.ts";
export { canonicalJson } from "./ledger/canonical-json.ts";
export {
  CHAIN_FORMAT,
  ChainCheck,
  type ChainedLeftOut,
  type ChainedRollout,
  type ChainRow,
  type CheckedChain,
  digestsOf,
  type RowDigests,
  type StepContent,
  sha256,
} from "./ledger/chain.ts";
export { rolloutDigests } from "./ledger/rollout-digests.ts";
export { comparableSettings, settingsDigest } from "./ledger/settings.ts";
export { addEvaluationMetrics, type PassRule, passAtK } from "./metrics/evaluation-metrics.ts";
export { MetricSet, Reduction } from "./metrics/reduction.ts";
export { addRolloutMetrics } from "./metrics/rollout-metrics.ts";
export { addStaleness } from "./metrics/staleness.ts";
export { splitMinibatches } from "./minibatches.ts";
export { modelPlaceShape } from "./model-place.ts";
export { groupMeans, groupsOf, renumber } from "./packing/groups.ts";
export type { PackedBatch, PackOptions } from "./packing/pack.ts";
export { packSamples } from "./packing/pack.ts";
export { rewardOf, turnRewardsOf, weightedSum } from "./rewards.ts";
export { groupsOfRole, partOfRole, placeOfSample } from "./role-parts.ts";
export type {
  Group,
  MaskedTokens,
  Rollout,
  Sample,
  Score,
  ToolUse,
  TurnReward,
  TurnSpan,
  VersionSpan,
} from "./rollout.ts";
export {
  checkSample,
  rolloutLogprobs,
  rolloutTokenCount,
  sampledTokenCount,
  versionRange,
} from "./rollout.ts";
export { isInRange, type NumberRange, numberIn, rangeRule } from "./sampling/number-range.ts";
export { SAMPLING_PARAMETERS, SamplingEffect, type SamplingParameter } from "./sampling/parameters.ts";
export {
  mapParameters,
  outOfRange,
  SAMPLING_NAMES,
  type SamplingName,
  type SamplingParameters,
  samplingSchema,
} from "./sampling/sampling.ts";
export { lastBoxed } from "./scorers/boxed.ts";
export { Gsm8kMethod, gsm8kAnswer, scoreGsm8k } from "./scorers/gsm8k.ts";
export { isSameAnswer, normalizeMath, scoreMath } from "./scorers/math.ts";
export { type DapoScore, normalizeFinalAnswer, scoreMathDapo } from "./scorers/math-dapo.ts";
export { clipReason, reasonKey, reasonLine } from "./troubles/failure-reason.ts";
export type { OutcomeTrouble, RolloutTroubles, ToolTrouble } from "./troubles/rollout-troubles.ts";
export { troublesOf, uniformFailureOf } from "./troubles/rollout-troubles.ts";
export { TurnInfo } from "./turn-info.ts";
