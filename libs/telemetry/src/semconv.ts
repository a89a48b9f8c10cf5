/**
 * Every span, attribute and metric name that Hone uses.
 *
 * Names are OpenTelemetry's where it has them: `gen_ai.*` (status Development, semantic conventions 1.41.1),
 * `messaging.*` (Development), `service.*`, `error.*`. What Hone adds stands under `hone.*`, never under theirs.
 * Span names are low in cardinality: what varies is an attribute, or the one word that the convention puts
 * behind the operation (`chat {model}`, `execute_tool {tool}`).
 */

/** Names of spans, and builders for those that carry one word more. */
export const SpanName = {
  /** A whole rollout, from the job sent to the episode scored; root of its trace. trainer. */
  rollout: "rollout",
  /** One attempt of an agent. agent-rollout. */
  invokeAgent: (agentName: string) => `invoke_agent ${agentName}`,
  /** One model call. Kind client in agent-rollout, server in inference-gateway. */
  chat: (model: string) => `chat ${model}`,
  /** Engine phases below the server's `chat`. inference-gateway. */
  engineQueue: "engine.queue",
  enginePrefill: "engine.prefill",
  engineDecode: "engine.decode",
  /** Loading of a policy version beside the running one. inference-gateway. */
  engineLoad: "engine.load",
  /** One tool call. agent-rollout. */
  executeTool: (toolName: string) => `execute_tool ${toolName}`,
  /** Environment calls. agent-rollout. */
  environmentReset: "environment.reset",
  environmentStep: "environment.step",
  environmentFinish: "environment.finish",
  /** Scoring of one episode. judge. */
  judge: "judge",
  /** What training did with one rollout, made after the commit. trainer. */
  train: "train",
  /** One step of a run; a trace of its own, linked to the `train` spans that it used. trainer. */
  step: "step",
  /** Phases of a step. trainer. */
  stepBatch: "step.batch",
  stepRollouts: "step.rollouts",
  stepOptimize: "step.optimize",
  stepCommit: "step.commit",
  stepPublish: "step.publish",
  /** What a PyTorch worker did in a call of the trainer, and the parts of that. trainer, as its workers tell. */
  worker: (part: string) => `worker.${part}`,
  /** The supervised phase before the first step. trainer. */
  warmStart: "warm_start",
  replay: "replay",
  /** One evaluation. trainer. */
  evaluate: "evaluate",
  /** Tasks of one batch. dataset. */
  datasetBatch: "dataset.batch",
} as const;

/** Names of attributes. */
export const Attr = {
  // Hone's own words (architecture, part 1)
  runId: "hone.run.id",
  runName: "hone.run.name",
  step: "hone.step",
  /** `<split>.<step>.<task>.<index>` */
  slot: "hone.slot",
  split: "hone.split",
  groupId: "hone.group.id",
  rolloutId: "hone.rollout.id",
  taskId: "hone.task.id",
  /** The role whose part of the rollout was trained, where the run names roles. */
  role: "hone.role",
  attempt: "hone.attempt",
  turn: "hone.turn",
  /** What the messages of a model call were to the record: "extension", "branch" … */
  callKind: "hone.call.kind",
  /** Its caller went away before the answer was there. */
  callAbandoned: "hone.call.abandoned",
  turnCount: "hone.turn.count",
  sampleCount: "hone.sample.count",
  policyVersion: "hone.policy.version",
  policyVersionLowest: "hone.policy.version.lowest",
  policyVersionHighest: "hone.policy.version.highest",
  replica: "hone.replica",
  outcome: "hone.outcome",
  outcomeReason: "hone.outcome.reason",
  success: "hone.success",

  // Rewards
  reward: "hone.reward",
  turnReward: "hone.turn.reward",
  environmentReturn: "hone.environment.return",
  environmentName: "hone.environment.name",
  environmentSeed: "hone.environment.seed",
  environmentAction: "hone.environment.action",
  environmentActionValid: "hone.environment.action.valid",
  environmentTerminated: "hone.environment.terminated",
  environmentTruncated: "hone.environment.truncated",

  // What training did with a rollout
  advantage: "hone.advantage",
  /** The advantage of each turn's tokens, if turns have rewards of their own. */
  turnAdvantages: "hone.turn.advantages",
  loss: "hone.loss",
  ratioMean: "hone.ratio.mean",
  ratioMax: "hone.ratio.max",
  clipFraction: "hone.clip.fraction",
  entropy: "hone.entropy",
  gradientNorm: "hone.gradient.norm",
  /** Largest |logprob when sampled - logprob recomputed|. */
  mismatchMax: "hone.mismatch.max",
  trainedTokens: "hone.trained.tokens",
  groupCount: "hone.group.count",
  rolloutCount: "hone.rollout.count",
  ownerEpoch: "hone.owner.epoch",
  stateDigest: "hone.state.digest",

  /** Rank of a PyTorch worker within its group. */
  workerRank: "hone.worker.rank",

  // Engine
  queueMs: "hone.engine.queue_ms",
  prefillMs: "hone.engine.prefill_ms",
  decodeMs: "hone.engine.decode_ms",
  batchSize: "hone.engine.batch_size",
  sessionId: "hone.session.id",

  // GenAI
  genAiOperation: "gen_ai.operation.name",
  genAiProvider: "gen_ai.provider.name",
  genAiRequestModel: "gen_ai.request.model",
  genAiRequestTemperature: "gen_ai.request.temperature",
  genAiRequestTopP: "gen_ai.request.top_p",
  genAiRequestTopK: "gen_ai.request.top_k",
  genAiRequestMaxTokens: "gen_ai.request.max_tokens",
  genAiRequestSeed: "gen_ai.request.seed",
  genAiResponseId: "gen_ai.response.id",
  genAiResponseModel: "gen_ai.response.model",
  genAiResponseFinishReasons: "gen_ai.response.finish_reasons",
  genAiInputTokens: "gen_ai.usage.input_tokens",
  genAiOutputTokens: "gen_ai.usage.output_tokens",
  genAiCachedTokens: "gen_ai.usage.cache_read.input_tokens",
  genAiConversationId: "gen_ai.conversation.id",
  genAiAgentName: "gen_ai.agent.name",
  genAiToolName: "gen_ai.tool.name",
  genAiToolCallId: "gen_ai.tool.call.id",
  genAiEvaluationName: "gen_ai.evaluation.name",
  genAiEvaluationScore: "gen_ai.evaluation.score.value",

  // Messaging
  messagingSystem: "messaging.system",
  messagingOperation: "messaging.operation.name",
  messagingOperationType: "messaging.operation.type",
  messagingDestination: "messaging.destination.name",
  messagingDestinationTemplate: "messaging.destination.template",
  messagingConsumer: "messaging.consumer.group.name",
  messagingMessageId: "messaging.message.id",
  messagingBatchCount: "messaging.batch.message_count",

  // General
  serviceName: "service.name",
  serviceNamespace: "service.namespace",
  serviceInstanceId: "service.instance.id",
  errorType: "error.type",
} as const;

/** Values of attributes with a fixed vocabulary. */
export const AttrValue = {
  providerHone: "hone",
  messagingSystemNats: "nats",
  messagingSend: "send",
  messagingProcess: "process",
  operationChat: "chat",
  operationInvokeAgent: "invoke_agent",
  operationExecuteTool: "execute_tool",
  serviceNamespaceHone: "hone",
} as const;

/** Names of span events. */
export const EventName = {
  /** OpenTelemetry's event for a judgement. */
  evaluationResult: "gen_ai.evaluation.result",
} as const;

/** How figures of one metric, from several parts of one step, become one figure. */
export const Reduce = {
  mean: "mean",
  sum: "sum",
  max: "max",
  /** The latest. */
  last: "last",
} as const;
export type Reduce = (typeof Reduce)[keyof typeof Reduce];

/** What a metric measures. */
export interface MetricInfo {
  /** UCUM unit as OpenTelemetry writes it: "1", "ms", "{token}". */
  readonly unit: string;
  readonly reduce: Reduce;
  /** For people: what it says. */
  readonly description: string;
}

/** Names of a step's figures, as RunEvent.StepCompleted carries them. `outcome/<name>` joins them per outcome. */
export const MetricName = {
  rewardMean: "reward/mean",
  rewardStd: "reward/std",
  success: "success",
  episodes: "episodes",
  groupsUsed: "groups/used",
  groupsFlat: "groups/flat",
  groupsAhead: "groups/ahead",
  groupsReady: "groups/ready",
  groupsOpen: "groups/open",
  groupsTooOld: "groups/too_old",
  rolloutsWaiting: "rollouts/waiting",
  deadlineMs: "deadline/ms",
  deadlineEnded: "deadline/ended",
  stalenessMean: "staleness/mean",
  stalenessMax: "staleness/max",
  turnsMean: "turns/mean",
  tokens: "tokens",
  tokensTrained: "tokens/trained",
  loss: "loss",
  klMean: "kl/mean",
  gradientNorm: "grad_norm",
  learningRate: "learning_rate",
  entropy: "entropy",
  clipFraction: "clip_fraction",
  ratioMax: "ratio/max",
  mismatchMax: "mismatch/max",
  mismatchMean: "mismatch/mean",
  invalidActions: "actions/invalid",
  timeRolloutMs: "time/rollout_ms",
  timeTrainMs: "time/train_ms",
  timeScoreMs: "time/score_ms",
  timeCommitMs: "time/commit_ms",
  timePublishMs: "time/publish_ms",
  timeStepMs: "time/step_ms",
  idleTrainer: "idle/trainer",
  idleEngines: "idle/engines",
  tokensPerSecond: "tokens_per_second",
  episodesPerSecond: "episodes_per_second",
} as const;
export type MetricName = (typeof MetricName)[keyof typeof MetricName];

/** Unit and reduction of every metric. */
export const METRICS: Readonly<Record<MetricName, MetricInfo>> = {
  "reward/mean": { unit: "1", reduce: Reduce.mean, description: "mean reward of the scorable rollouts" },
  "reward/std": { unit: "1", reduce: Reduce.mean, description: "standard deviation of their rewards" },
  success: { unit: "1", reduce: Reduce.mean, description: "share of the scorable rollouts that succeeded" },
  episodes: { unit: "{episode}", reduce: Reduce.sum, description: "rollouts made" },
  "groups/used": { unit: "{group}", reduce: Reduce.sum, description: "groups that gave a gradient" },
  "groups/flat": { unit: "{group}", reduce: Reduce.sum, description: "groups whose rewards are all equal" },
  "groups/ahead": {
    unit: "{group}",
    reduce: Reduce.last,
    description: "groups that may be played beyond those of the step",
  },
  "groups/ready": {
    unit: "{group}",
    reduce: Reduce.last,
    description: "groups that were ready for the next step when this one was trained",
  },
  "groups/open": {
    unit: "{group}",
    reduce: Reduce.last,
    description: "groups that are being played or wait for a later step",
  },
  "groups/too_old": {
    unit: "{group}",
    reduce: Reduce.sum,
    description: "groups given up because their tokens grew too old",
  },
  "rollouts/waiting": {
    unit: "{rollout}",
    reduce: Reduce.last,
    description: "scored rollouts that wait for a later step",
  },
  "deadline/ms": {
    unit: "ms",
    reduce: Reduce.last,
    description: "deadline of the step's attempts, where the run file derives it from what earlier ones took",
  },
  "deadline/ended": {
    unit: "{rollout}",
    reduce: Reduce.sum,
    description: "rollouts that such a deadline ended before deadlineMs would have",
  },
  "staleness/mean": { unit: "{version}", reduce: Reduce.mean, description: "age of the trained tokens" },
  "staleness/max": { unit: "{version}", reduce: Reduce.max, description: "age of the oldest trained token" },
  "turns/mean": { unit: "{turn}", reduce: Reduce.mean, description: "turns in a rollout" },
  tokens: { unit: "{token}", reduce: Reduce.sum, description: "tokens in the samples, prompts included" },
  "tokens/trained": { unit: "{token}", reduce: Reduce.sum, description: "sampled tokens in the loss" },
  loss: { unit: "1", reduce: Reduce.mean, description: "loss over the step's minibatches" },
  "kl/mean": { unit: "1", reduce: Reduce.mean, description: "divergence from the reference, per token" },
  grad_norm: { unit: "1", reduce: Reduce.mean, description: "global norm before clipping" },
  learning_rate: { unit: "1", reduce: Reduce.last, description: "of the last update" },
  entropy: { unit: "nat", reduce: Reduce.mean, description: "of the sampling distribution, per token" },
  clip_fraction: { unit: "1", reduce: Reduce.mean, description: "share of tokens whose ratio was clipped" },
  "ratio/max": { unit: "1", reduce: Reduce.max, description: "largest probability ratio" },
  "mismatch/max": {
    unit: "nat",
    reduce: Reduce.max,
    description: "largest |logprob when sampled - recomputed|",
  },
  "mismatch/mean": {
    unit: "nat",
    reduce: Reduce.mean,
    description: "mean |logprob when sampled - recomputed|",
  },
  "actions/invalid": { unit: "1", reduce: Reduce.mean, description: "share of turns without a valid action" },
  "time/rollout_ms": { unit: "ms", reduce: Reduce.sum, description: "waiting for rollouts" },
  "time/train_ms": { unit: "ms", reduce: Reduce.sum, description: "optimizer at work" },
  "time/score_ms": {
    unit: "ms",
    reduce: Reduce.sum,
    description: "part of time/train_ms before the updates: values, the reference, teachers",
  },
  "time/commit_ms": { unit: "ms", reduce: Reduce.sum, description: "state files, ledger, run state" },
  "time/publish_ms": {
    unit: "ms",
    reduce: Reduce.sum,
    description: "until replicas are told of the version",
  },
  "time/step_ms": { unit: "ms", reduce: Reduce.sum, description: "the whole step" },
  "idle/trainer": {
    unit: "1",
    reduce: Reduce.mean,
    description: "share of the step in which the trainer waited for rollouts",
  },
  "idle/engines": {
    unit: "1",
    reduce: Reduce.mean,
    description: "share of the time in which the replicas had nothing to generate, for any run",
  },
  tokens_per_second: { unit: "{token}/s", reduce: Reduce.mean, description: "tokens over the step's time" },
  episodes_per_second: {
    unit: "{episode}/s",
    reduce: Reduce.mean,
    description: "episodes over the step's time",
  },
};
