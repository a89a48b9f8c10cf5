/**
 * Plays and judges one rollout of a run file in this process. The tasks, the rollout, the judges and the engine are the code
 * of the services, without a bus between them.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type JobTask,
  openRolloutParts,
  type RolloutJob,
  type RolloutRecord,
  readConfig as readRolloutConfig,
  runRollout,
  serveSessions,
} from "@hone/agent-rollout/playing";
import { installLeanRunContext } from "@hone/agents";
import {
  agentOfPart,
  ConfigError,
  judgesOfPart,
  maxTurnsOfPart,
  modulesOf,
  type RunConfig,
} from "@hone/config";
import { Outcome, parseJson } from "@hone/core";
import { openSource, openSourceParts, readDatasetConfig, type Task } from "@hone/dataset/tasks";
import { readInferenceGatewayConfig } from "@hone/inference-gateway/engine";
import { assemblePanel, judgedRowOf, openJudgeParts, scoreEpisode, type Verdict } from "@hone/judge/scoring";
import { contextOfTraceparent, createLogger } from "@hone/telemetry";
import { ChatRenderer, loadTokenizer } from "@hone/tokenizer";
import { openStartModel, readTrainerConfig } from "@hone/trainer/start-model";
import { UsageError } from "../errors.ts";
import { localEnvironment, type Project } from "../project.ts";
import { openPolicy, type PolicyChoice } from "./choose-policy.ts";
import { type RolloutListener, type SeenTurn, TurnRecorder } from "./turn-recorder.ts";

export interface DebugOptions {
  readonly project: Project;
  /** Path of the run file, for errors. */
  readonly file: string;
  readonly split: "train" | "eval";
  /** Number of the task, from 1, in the order of its source. */
  readonly row: number;
  readonly policy: PolicyChoice;
  readonly temperature: number | undefined;
  /** Replaces the run's seed. */
  readonly seed: number | undefined;
  readonly signal: AbortSignal;
  readonly listener: RolloutListener & {
    onTask(task: JobTask, size: number): void;
    /** Called when something begins that may take long. */
    onWait(what: string): void;
  };
}

export interface DebuggedRollout {
  readonly task: JobTask;
  readonly turns: readonly SeenTurn[];
  readonly record: RolloutRecord;
  readonly verdict: Verdict;
  /** Judges that were not asked, because they compare the rollouts of a group. */
  readonly groupJudges: readonly string[];
  /** How the run treats a rollout with this outcome (`algorithm.outcomes`); undefined if its reward counts as it is. */
  readonly rule: { readonly key: string; readonly rule: unknown } | undefined;
}

/** The rollout is played as at a run's start: with version 0, for step 1. */
const VERSION = 0;
const STEP = 1;

/**
 * @throws {UsageError} when the row does not exist.
 * @throws {ConfigError} when the run's model is refused.
 */
export async function debugRollout(run: RunConfig, options: DebugOptions): Promise<DebuggedRollout> {
  const { project, policy: choice, signal, listener } = options;
  const environment = localEnvironment(project);
  installLeanRunContext(environment);
  await using opened = new AsyncDisposableStack();
  const task = await taskOf(run, options, environment);
  const judges = opened.use(openJudgeParts(project.folder, environment));
  // Done before anything is played, so that a judge that cannot be built is reported at once.
  const panel = await assemblePanel(judgesOfPart(run, task.part ?? ""), judges);
  const parts = opened.use(openRolloutParts(readRolloutConfig(environment)));

  const folder = await mkdtemp(join(tmpdir(), "hone-debug-"));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  const { hub } = readTrainerConfig(environment);
  listener.onWait("checking the model");
  const onProgress = (done: number, total: number) =>
    listener.onWait(`fetching the model, ${Math.round(done / 1e6)} of ${Math.round(total / 1e6)} MB`);
  const model = await openStartModel(withModel(run, choice), { folder, hub, signal, onProgress });
  if (model.kind === "refused") {
    const problems = model.problems.map((each) => ({
      ...each,
      value: JSON.parse(each.valueJson) as unknown,
    }));
    throw new ConfigError(options.file, problems);
  }
  const tokenizer = await loadTokenizer(model.tokenizer);
  const renderer = new ChatRenderer(tokenizer);
  const { maxCacheBytes } = readInferenceGatewayConfig(environment);
  if (choice.kind === "model") listener.onWait("loading the model");
  const job = jobOf(run, task, options);
  const policy = await openPolicy(choice, {
    tokenizer,
    weights: model.weights,
    model: job.runId,
    version: VERSION,
    maxCacheBytes,
  });
  opened.defer(async () => policy[Symbol.asyncDispose]?.());

  const logger = createLogger({ service: "debug", level: "warn", sink: process.stderr });
  const served = opened.use(await serveSessions(logger));
  const observer = new TurnRecorder({ tokenizer, isTrainable: choice.kind !== "endpoint", listener });
  const record = await runRollout(
    job,
    { ...parts, policy, sessions: served.sessions, rendererOf: async () => renderer },
    { signal, trace: contextOfTraceparent(undefined), observer },
  );
  const verdict = await scoreEpisode(
    {
      outcome: record.outcome,
      environmentReturn: record.environmentReturn,
      roleRewards: record.roleRewards ?? {},
      turns: record.turns.map(({ info = {}, ...turn }) => ({ ...turn, info })),
      row: task.row === undefined ? undefined : judgedRowOf(task.row),
      metadata: record.metadata,
    },
    panel,
    { signal },
  );
  signal.throwIfAborted();
  return {
    task,
    turns: observer.turns,
    record,
    verdict,
    groupJudges: panel.groupJudges.map(({ name }) => name),
    rule: ruleOf(run, record),
  };
}

const RULES = {
  [Outcome.truncated]: "truncated",
  [Outcome.agentFailed]: "agentFailed",
  [Outcome.timedOut]: "timedOut",
} as const;

function ruleOf({ algorithm }: RunConfig, { outcome }: RolloutRecord): DebuggedRollout["rule"] {
  const key = RULES[outcome as keyof typeof RULES] as (typeof RULES)[keyof typeof RULES] | undefined;
  if (key === undefined || algorithm.outcomes[key] === "keep") return undefined;
  return { key: `algorithm.outcomes.${key}`, rule: algorithm.outcomes[key] };
}

async function taskOf(
  run: RunConfig,
  { split, row, listener }: DebugOptions,
  environment: ReturnType<typeof localEnvironment>,
): Promise<JobTask> {
  const spec = run.dataset[split];
  if (spec === undefined) {
    throw new UsageError(`the run file has no dataset.${split}, which --split ${split} takes its task from`);
  }
  const logger = createLogger({ service: "hone", level: "warn", sink: process.stderr });
  using parts = openSourceParts(readDatasetConfig(environment), logger);
  const order = await openSource(spec, parts);
  if (row > order.size) {
    throw new UsageError(`--row ${row} does not exist; dataset.${split} has rows 1 to ${order.size}`);
  }
  const stretch = { runSeed: run.seed, cursor: row - 1, count: 1, isShuffled: false };
  const [found] = await order.take(stretch);
  const task = jobTaskOf(found!);
  listener.onTask(task, order.size);
  return task;
}

function jobTaskOf(task: Task): JobTask {
  const named = { id: task.id, ...(task.part !== undefined && { part: task.part }) };
  if (task.kind === "row") {
    const row = parseJson(task.rowJson) as Readonly<Record<string, unknown>>;
    return { ...named, environment: undefined, row };
  }
  const { environment: name, seed, configJson } = task;
  return { ...named, environment: { name, seed, configJson }, row: undefined };
}

function withModel(run: RunConfig, choice: PolicyChoice): RunConfig {
  if (choice.kind !== "model" || choice.place === undefined) return run;
  return { ...run, model: { ...choice.place, dtype: "auto" } };
}

function jobOf(
  run: RunConfig,
  task: JobTask,
  { split, row, policy, temperature, seed: otherSeed }: DebugOptions,
): RolloutJob {
  const { name, rollout, seed } = run;
  const { maxContextTokens, deadlineMs, sampling } = rollout;
  const agent = agentOfPart(run, task.part ?? "");
  const maxTurns = maxTurnsOfPart(run, task.part ?? "");
  return {
    runId: `${name}-debug`,
    resumption: 0,
    slot: { split, step: STEP, task: row - 1, index: 0 },
    runSeed: otherSeed ?? seed,
    task,
    agentName: agent.name,
    agentConfigJson: agent.config === undefined ? undefined : JSON.stringify(agent.config),
    agentModules: modulesOf(run),
    scriptedPolicy: policy.kind === "script" ? policy.name : undefined,
    endpoint:
      policy.kind === "endpoint"
        ? { keyVariable: undefined, concurrency: 16, ...policy.endpoint }
        : undefined,
    sampling: { ...sampling, temperature: temperature ?? sampling.temperature },
    // A failure is shown, not retried.
    limits: { maxTurns, maxContextTokens, deadlineMs, maxAttempts: 1 },
    lowestVersion: VERSION,
    highestVersion: VERSION,
    maxStaleness: undefined,
    tokenizerPath: "",
    tokenizerDigest: "",
  };
}
