/** Runs the agent of an attempt to its end, with what the attempt gives it. */

import {
  type AgentResult,
  type AgentTask,
  type AttemptClock,
  HoneChatModel,
  LimitReachedError,
  type ModelSession,
  type PreparedAgent,
  type RolloutEnvironment,
  type RolloutObserver,
  RolloutTools,
  toolsOfRow,
} from "@hone/agents";
import { parseJson, turnSeed } from "@hone/core";
import type { Context } from "@hone/telemetry";
import type { ChatRenderer } from "@hone/tokenizer";
import { UnusableJobError } from "./errors.ts";
import type { RolloutJob } from "./rollout-job.ts";
import type { AttemptSessions } from "./sessions/attempt-sessions.ts";
import type { JobEpisodes } from "./swarm/job-episodes.ts";
import type { LentEpisodeParts } from "./swarm/lent-episode.ts";

/** The agent, and the form in which its model reads. */
export interface PlayedAgent {
  readonly agent: PreparedAgent;
  readonly renderer: ChatRenderer;
}

/** Used as the number of a turn to derive the seed of tools. No real turn has this number, so no sampling shares the seed. */
const TOOL_SEED_TURN = 2 ** 31;

/** What the agent of an attempt is given. */
export interface AgentParts {
  readonly session: ModelSession;
  readonly sessions: AttemptSessions;
  readonly environment: RolloutEnvironment | undefined;
  /** The tools that the agent opens are added to it. */
  readonly tools: RolloutTools[];
  readonly clock: AttemptClock;
  readonly signal: AbortSignal;
  readonly trace: Context;
  readonly observer: RolloutObserver | undefined;
  readonly attempt: number;
  readonly episodes: JobEpisodes | undefined;
}

/** Runs the agent, and finishes an episode that is then still open. @throws what the agent throws. */
export async function playToEnd(job: RolloutJob, parts: PlayedAgent, own: AgentParts): Promise<AgentResult> {
  try {
    const result = await runAgent(job, parts, own);
    await own.environment?.finish();
    return result;
  } catch (error) {
    if (own.session.failure instanceof LimitReachedError) await own.environment?.finish();
    throw error;
  }
}

function runAgent(job: RolloutJob, { agent, renderer }: PlayedAgent, own: AgentParts): Promise<AgentResult> {
  const { session, sessions, environment, tools, clock, signal, trace, observer, attempt, episodes } = own;
  const task = taskOf(job);
  return agent.definition.run(agent.graph, {
    config: agent.config,
    task,
    model: new HoneChatModel(session),
    environment,
    maxTurns: job.limits.maxTurns,
    maxNewTokens: job.sampling.maxNewTokens,
    signal,
    openTools(toolbox) {
      const opened = new RolloutTools(toolbox, {
        ...toolsOfRow(job.task),
        task,
        tokenizer: renderer.tokenizer,
        trace,
        signal,
        clock,
        seed: turnSeed(job.runSeed, job.slot, TOOL_SEED_TURN),
        lastTurn: () => session.lastTurn,
        observer,
      });
      tools.push(opened);
      return opened;
    },
    openSession: (options) => sessions.open(options),
    async offerEpisode(offer) {
      if (episodes === undefined) {
        throw new UnusableJobError("it waits for a client, and clients reach only the service agent-rollout");
      }
      const { runId, slot } = job;
      const openSession: LentEpisodeParts["openSession"] = (onCall) =>
        sessions.openWatched(offer.session, onCall);
      return episodes.offer({ ...offer, runId, slot, attempt, clock, openSession }, signal);
    },
  });
}

function taskOf({ task: { id, row, environment } }: RolloutJob): AgentTask {
  if (environment === undefined) return { id, row };
  const { name, seed, configJson } = environment;
  return { id, row, environment: { name, seed, config: configJson === "" ? {} : parseJson(configJson) } };
}
