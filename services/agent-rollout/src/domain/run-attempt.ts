/**
 * Runs one attempt at a rollout: the agent plays in a fresh environment, and the attempt's record begins empty.
 *
 * A1: It never rejects: the end of the attempt is its value.
 * A2: It settles when its time is over or its signal aborts, even if the agent ignores that.
 * A3: It ends as stale as soon as its first token is older than the job allows, even while a tool works.
 * A4: The outcome follows, in this order, from: the signal or the clock, a failed call of the environment or a tool, one of
 *     the model (even if the agent caught the error), an error of the agent, the agent's result (see verdict.ts).
 * A5: An episode that is still open when the agent has returned or reached a limit is finished, within the attempt's time. A
 *     failure in that ends the attempt as any other of the environment does.
 */

import {
  type AgentResult,
  AttemptClock,
  AttemptTimedOutError,
  type BadRowError,
  Conversation,
  type Environment,
  type EnvironmentRefusedError,
  ModelSession,
  type Policy,
  PolicyStaleError,
  type PreparedAgent,
  RolloutEnvironment,
  type RolloutObserver,
  type RolloutTools,
  type Script,
  ScriptedPolicy,
} from "@hone/agents";
import {
  deadline,
  groupIdOf,
  Outcome,
  type RetryableError,
  rolloutIdOf,
  TerminalError,
  turnSeed,
} from "@hone/core";
import { type Context, contextOf, recordError, type Span, SpanName, withSpan } from "@hone/telemetry";
import type { ChatRenderer } from "@hone/tokenizer";
import { type AttemptEnd, type AttemptRecord, describeEnd, spanAttributesOf } from "./attempt-end.ts";
import type { Endpoints } from "./endpoints.ts";
import { playToEnd } from "./play-to-end.ts";
import type { RolloutJob } from "./rollout-job.ts";
import { AttemptSessions } from "./sessions/attempt-sessions.ts";
import type { SessionHost } from "./sessions/session-host.ts";
import type { JobEpisodes } from "./swarm/job-episodes.ts";
import { returnedVerdict, type Verdict, verdictOf } from "./verdict.ts";

/** What an attempt needs besides its job. */
export interface AttemptParts {
  readonly agent: PreparedAgent;
  readonly renderer: ChatRenderer;
  readonly policy: Policy;
  /** Through which external agents call the model. */
  readonly sessions: SessionHost;
  /** External models, which may answer for some of the roles. */
  readonly endpoints: Endpoints;
  /** Replaces the policy and acts in the task's environment; undefined = the policy answers. */
  readonly script: Script | undefined;
  /** Makes a fresh environment; undefined = the task has none. */
  readonly makeEnvironment: (() => Environment) | undefined;
}

export interface AttemptOptions {
  /** Number of the attempt, from 1. */
  readonly attempt: number;
  /** Aborts with a RolloutCancelledError or a ServiceStoppingError as its reason. */
  readonly signal: AbortSignal;
  readonly trace: Context;
  /** See {@link RolloutOptions}. */
  readonly onVersion?: (listener: (version: number) => void) => () => void;
  /** Observes the attempt. @default none */
  readonly observer?: RolloutObserver | undefined;
  /** Where clients find episodes. @default there are no clients */
  readonly episodes?: JobEpisodes | undefined;
}

/** An environment that takes longer to close is left to the garbage collector. */
const CLOSE_DEADLINE_MS = 5_000;

/** Refuses the calls that an agent makes after its attempt. One error serves all of them, as making errors takes time. */
const ATTEMPT_OVER = new TerminalError("ATTEMPT_OVER", "the attempt is over; it makes no further calls");

/** Runs one attempt (A1). */
export function runAttempt(
  job: RolloutJob,
  parts: AttemptParts,
  options: AttemptOptions,
): Promise<AttemptEnd> {
  return withSpan(
    SpanName.invokeAgent(job.agentName),
    { parent: options.trace, attributes: spanAttributesOf(job, options.attempt) },
    async (span) => {
      const end = await runTraced(job, parts, { ...options, trace: contextOf(span, options.trace) }, span);
      describeEnd(span, end);
      return end;
    },
  );
}

async function runTraced(
  job: RolloutJob,
  parts: AttemptParts,
  options: AttemptOptions,
  span: Span,
): Promise<AttemptEnd> {
  const { deadlineMs } = job.limits;
  const { trace, observer } = options;
  observer?.onAttempt(options.attempt);
  // Aborts when the attempt is over, for whatever reason, and stops everything that still works for it.
  const over = new AbortController();
  const { promise: interrupted, reject: interrupt } = Promise.withResolvers<never>();
  interrupted.catch(() => undefined);
  const stop = (reason: unknown) => {
    over.abort(reason);
    interrupt(reason);
  };
  const onAbort = () => stop(options.signal.reason);
  options.signal.addEventListener("abort", onAbort, { once: true });
  if (options.signal.aborted) onAbort();
  const clock = new AttemptClock(deadlineMs, () => stop(new AttemptTimedOutError(deadlineMs)));
  const conversation = new Conversation(parts.renderer);
  let environment: RolloutEnvironment | undefined;
  const tools: RolloutTools[] = [];
  let session: ModelSession | undefined;
  let sessions: AttemptSessions | undefined;
  let result: AgentResult = {};
  let verdict: Verdict;
  const endWatch = watchAge(job, options, () => session?.firstVersion, stop); // A3
  try {
    over.signal.throwIfAborted();
    const inner = parts.makeEnvironment?.();
    if (inner !== undefined && job.task.environment !== undefined) {
      environment = new RolloutEnvironment({ ...job.task.environment, inner, trace, observer });
    }
    session = openSession(job, parts, options, { conversation, clock, signal: over.signal, inner });
    environment?.attach(session);
    sessions = new AttemptSessions({
      job,
      model: session,
      host: parts.sessions,
      endpoints: parts.endpoints,
      renderer: parts.renderer,
    });
    const { attempt, episodes } = options;
    const own = {
      session,
      sessions,
      environment,
      tools,
      clock,
      signal: over.signal,
      trace,
      observer,
      attempt,
      episodes,
    };
    result = await Promise.race([playToEnd(job, parts, own), interrupted]);
    verdict = returnedVerdict(result, failureOf(environment, tools) ?? session.failure, job);
  } catch (error) {
    const cause = over.signal.aborted
      ? over.signal.reason
      : (failureOf(environment, tools) ?? session?.failure ?? error);
    observer?.onFailure(cause);
    verdict = verdictOf(cause, job);
  } finally {
    clock.end();
    endWatch();
    options.signal.removeEventListener("abort", onAbort);
    over.abort(ATTEMPT_OVER);
    sessions?.close();
  }
  const environmentMetrics = environment?.metrics() ?? {};
  await close(environment, span);
  for (const each of tools) for (const error of await each.close()) recordError(span, error);
  if (verdict.kind === "given_back") return verdict;
  const recorded = conversation.record();
  const materials = Object.assign({}, ...tools.map((each) => each.materials())) as Record<string, unknown>;
  const record: AttemptRecord = {
    attempt: options.attempt,
    outcome: verdict.kind === "ended" ? verdict.outcome : Outcome.infraFailed,
    reason: verdict.reason,
    // The tokens that an external model sampled are not known.
    samples: job.endpoint === undefined ? recorded.samples : [],
    turns:
      job.endpoint === undefined
        ? recorded.turns
        : recorded.turns.map((turn) => ({ ...turn, sample: 0, sampledBegin: 0, sampledEnd: 0 })),
    metrics: {
      ...environmentMetrics,
      ...sumOf([...tools.map((each) => each.metrics()), ...(sessions?.metrics() ?? [])]),
      ...result.metrics,
    },
    metadata: {
      ...result.metadata,
      ...(Object.keys(materials).length > 0 && { materials }),
      ...(job.scriptedPolicy !== undefined && { scriptedPolicy: job.scriptedPolicy }),
      ...(job.endpoint !== undefined && {
        endpoint: { baseUrl: job.endpoint.baseUrl, model: job.endpoint.model },
      }),
    },
    toolUses: tools.flatMap((each) => each.uses()),
    environmentReturn: [...tools, ...(sessions === undefined ? [] : [sessions])].reduce(
      (sum, each) => sum + each.totalReward,
      environment?.totalReward ?? 0,
    ),
    roleRewards: { ...Object.fromEntries(session?.roleRewards ?? []), ...result.roleRewards },
    environmentState: environment?.state,
    durationMs: clock.spentMs,
    generationMs: session?.generationMs ?? 0,
    sessionKeyDigests: sessions?.rewardKeyDigests() ?? [],
  };
  return verdict.kind === "ended"
    ? { kind: "ended", record }
    : { kind: "infra_failed", record, isRetryable: verdict.isRetryable, freeReturns: verdict.freeReturns };
}

/** Stops an attempt whose first token has become too old (A3). @returns a function that ends the watch. */
function watchAge(
  { maxStaleness }: RolloutJob,
  { onVersion }: AttemptOptions,
  firstVersion: () => number | undefined,
  stop: (reason: unknown) => void,
): () => void {
  if (maxStaleness === undefined || onVersion === undefined) return () => undefined;
  return onVersion((version) => {
    const first = firstVersion();
    if (first === undefined || version <= first + maxStaleness) return;
    stop(
      new PolicyStaleError(
        `its first token is of version ${first}, version ${version} is being trained, and at most ${maxStaleness} may lie between them`,
      ),
    );
  });
}

function openSession(
  job: RolloutJob,
  { agent, renderer, policy, script }: AttemptParts,
  { attempt, trace, observer }: AttemptOptions,
  own: {
    conversation: Conversation;
    clock: AttemptClock;
    signal: AbortSignal;
    inner: Environment | undefined;
  },
): ModelSession {
  const { conversation, clock, signal, inner } = own;
  const { definition, config } = agent;
  const scripted =
    script !== undefined && inner !== undefined
      ? new ScriptedPolicy({
          script,
          environment: inner,
          tokenizer: renderer.tokenizer,
          write: (action) =>
            definition.writeAction?.(config, (format) => inner.describe?.(format) ?? {}, action) ?? action,
        })
      : undefined;
  return new ModelSession({
    conversation,
    clock,
    signal,
    trace,
    policy: scripted ?? policy,
    model: job.endpoint?.model ?? job.runId,
    sessionId: `${rolloutIdOf(job.runId, job.slot)}/${attempt}`,
    groupId: groupIdOf(job.runId, job.slot),
    sampling: job.sampling,
    stopTokenIds: renderer.tokenizer.stopTokenIds,
    maxTurns: job.limits.maxTurns,
    maxContextTokens: job.limits.maxContextTokens,
    lowestVersion: job.lowestVersion,
    highestVersion: job.highestVersion,
    maxStaleness: job.maxStaleness,
    onNewVersion: job.onNewVersion,
    // A script and an outside model play all roles.
    roles: scripted === undefined && job.endpoint === undefined ? job.roles : undefined,
    seedOfTurn: (turn) => turnSeed(job.runSeed, job.slot, turn),
    observer,
  });
}

function failureOf(
  environment: RolloutEnvironment | undefined,
  tools: readonly RolloutTools[],
): RetryableError | EnvironmentRefusedError | BadRowError | undefined {
  return environment?.failure ?? tools.find((each) => each.failure !== undefined)?.failure;
}

function sumOf(parts: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sum: Record<string, number> = {};
  for (const part of parts) {
    for (const [name, value] of Object.entries(part)) sum[name] = (sum[name] ?? 0) + value;
  }
  return sum;
}

async function close(environment: RolloutEnvironment | undefined, span: Span): Promise<void> {
  if (environment === undefined) return;
  try {
    await deadline("the environment to close", CLOSE_DEADLINE_MS, () => environment.close());
  } catch (error) {
    // The episode is recorded already, so the error is only noted in the trace.
    recordError(span, error);
  }
}
