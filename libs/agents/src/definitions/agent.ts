/** Agents: LangGraph graphs that are registered by name. */

import type { z } from "zod";
import type { HoneChatModel } from "../model/hone-chat-model.ts";
import type { RolloutTools } from "../tools/rollout-tools.ts";
import type { BuildContext } from "../tools/tool-config.ts";
import type { Toolbox } from "../tools/toolbox.ts";
import type { AgentTask } from "./agent-task.ts";
import type { InputProblem } from "./check-input.ts";
import type {
  ActionFormat,
  EnvironmentDescription,
  EnvironmentReset,
  EnvironmentStep,
} from "./environment.ts";
import { Registry } from "./registry.ts";

/** The task's environment. Its rewards and info are recorded with the turn whose answer it was given. */
export interface AgentEnvironment {
  reset(): Promise<EnvironmentReset>;
  step(action: string): Promise<EnvironmentStep>;
  metrics(): Readonly<Record<string, number>>;
  /** How the environment introduces itself; empty where it does not. */
  describe(format?: ActionFormat): EnvironmentDescription;
}

/** A URL through which programs of any kind call the model; every call is recorded as a turn of the attempt. */
export interface AgentSession {
  /** The session's address, without a slash at its end. The APIs are below it, such as `<url>/v1/chat/completions`. */
  readonly url: string;
  /** Key of this session only, sent as bearer token or as `x-api-key`. */
  readonly key: string;
  /** Name of the model, for clients that want one. */
  readonly model: string;
}

/** A participant that answers through a session. */
export interface SessionRole {
  /** Whether its answers are trained. @default true */
  readonly learn?: boolean | undefined;
  /** An outside model that answers for the role; absent = the run's own model. Allowed only if the role does not learn. */
  readonly endpoint?: SessionEndpoint | undefined;
}

/** A model behind an OpenAI-compatible API. */
export interface SessionEndpoint {
  /** URL up to and including `/v1`. */
  readonly baseUrl: string;
  readonly model: string;
  /** Environment variable of agent-rollout that holds the key. */
  readonly keyVariable?: string | undefined;
  readonly concurrency: number;
}

export interface SessionOptions {
  /** Roles by name. A call names its role as its model or in its URL, `<url>/roles/<name>`. Absent = one role that learns. */
  readonly roles?: Readonly<Record<string, SessionRole>> | undefined;
  /** Whether rewards may be given through the session, with its key. @default false */
  readonly takesRewards?: boolean | undefined;
}

/** An episode that a client somewhere else is to play. */
export interface EpisodeOffer {
  /** What the client is told of the task, as JSON. */
  readonly task: unknown;
  /** How the client's session is opened. */
  readonly session: SessionOptions;
  /** The episode is taken from a client that gives no sign of life for this long. */
  readonly leaseMs: number;
  /** How often it may come back from clients before that counts as a failed attempt. */
  readonly freeReturns: number;
  /** The attempt fails where no client begins the episode within this time; absent = it waits. */
  readonly beginDeadlineMs?: number | undefined;
}

/** One attempt at one rollout, as its agent sees it. */
export interface AgentRollout<Config> {
  readonly config: Config;
  readonly task: AgentTask;
  /** Calls the policy; every call is a turn of the record. */
  readonly model: HoneChatModel;
  /** Absent for the row of a dataset. */
  readonly environment: AgentEnvironment | undefined;
  /** Most model calls; another call ends the rollout as truncated. */
  readonly maxTurns: number;
  /** Most tokens that the model may write in one turn. */
  readonly maxNewTokens: number;
  /** Aborts when the attempt's time is over or the run no longer needs it. */
  readonly signal: AbortSignal;
  /** Opens tools for this attempt, with what the row says about tools; they are closed at the end of the attempt. */
  openTools(toolbox: Toolbox): RolloutTools;
  /** Opens a session for programs that this agent starts or asks. It ends with the attempt. */
  openSession(options?: SessionOptions): AgentSession;
  /**
   * Lets a client play the attempt, and waits until it has. The attempt's time stands while no client has the episode, and is
   * charged at each sign of life of the one that has it.
   * @returns what the client reports.
   * @throws {RetryableError} when the client aborts or vanishes.
   */
  offerEpisode(offer: EpisodeOffer): Promise<AgentResult>;
}

/** What an agent returns. */
export interface AgentResult {
  /** Whether a limit ended the rollout, and not the agent. @default false */
  readonly isTruncated?: boolean;
  /** Numbers for the run's metrics, such as `{ success: 1 }`. */
  readonly metrics?: Readonly<Record<string, number>>;
  /**
   * What single roles earned, for runs that name them (`roles` in the run file): the value of the judge "environment" for these
   * roles, in place of the sum of all turns' rewards. Finite.
   */
  readonly roleRewards?: Readonly<Record<string, number>>;
  /** Anything else worth keeping, such as a final answer; it is stored in the episode as JSON. */
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** How an agent is built and run. */
export interface AgentDefinition<Config, Graph> {
  /** Checks the agent's YAML file and fills in defaults. */
  readonly configSchema: z.ZodType<Config>;
  /** Whether it needs the environment of its task. */
  readonly needsEnvironment: boolean;
  /** Whether it needs the row of a dataset, with a prompt. @default false */
  readonly needsRow?: boolean;
  /** Whether somebody else plays in the task's environment, so that none is made here. @default false */
  readonly leavesEnvironment?: boolean;
  /** Builds the graph, once per configuration; everything that belongs to one rollout is passed to `run`. */
  buildGraph(config: Config, context: BuildContext): Graph | Promise<Graph>;
  run(graph: Graph, rollout: AgentRollout<Config>): Promise<AgentResult>;
  /**
   * Whether the agent can play in environments of this description: what is wrong in its configuration, before a run starts.
   * @default nothing is wrong
   */
  checkEnvironment?(config: Config, describe: AgentEnvironment["describe"]): InputProblem[];
  /**
   * Writes the answer from which this agent reads an action, so that scripted policies can answer in the model's place.
   * @default the action itself
   * @throws {InvalidInputError} where it has no way to write it.
   */
  writeAction?(config: Config, describe: AgentEnvironment["describe"], action: string): string;
}

const agents = new Registry<AgentDefinition<unknown, unknown>>("an agent");

/**
 * Registers an agent by name.
 * @throws {DuplicateNameError} when the name is taken.
 * @example register("frozen_lake", { configSchema, needsEnvironment: true, buildGraph, run });
 */
export function register<Config, Graph>(name: string, definition: AgentDefinition<Config, Graph>): void {
  agents.add(name, defineAgent(definition));
}

/** Defines an agent that a module of a run exports: `export const agents = { mine: defineAgent({…}) }`. */
export function defineAgent<Config, Graph>(
  definition: AgentDefinition<Config, Graph>,
): AgentDefinition<unknown, unknown> {
  return {
    configSchema: definition.configSchema,
    needsEnvironment: definition.needsEnvironment,
    needsRow: definition.needsRow ?? false,
    leavesEnvironment: definition.leavesEnvironment ?? false,
    buildGraph: (config, context) => definition.buildGraph(config as Config, context),
    run: (graph, rollout) => definition.run(graph as Graph, rollout as AgentRollout<Config>),
    checkEnvironment: (config, describe) => definition.checkEnvironment?.(config as Config, describe) ?? [],
    writeAction: (config, describe, action) =>
      definition.writeAction?.(config as Config, describe, action) ?? action,
  };
}

export function agentOf(name: string): AgentDefinition<unknown, unknown> | undefined {
  return agents.get(name);
}

export function agentNames(): string[] {
  return agents.names();
}

/** The rollout that a graph was invoked with: `graph.invoke(input, { configurable: { rollout } })`. */
export function rolloutOf<Config>(config: {
  readonly configurable?: Readonly<Record<string, unknown>>;
}): AgentRollout<Config> {
  const rollout = config.configurable?.rollout;
  if (rollout === undefined) throw new TypeError("the graph was invoked without a rollout");
  return rollout as AgentRollout<Config>;
}
