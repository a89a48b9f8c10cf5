/** A rollout in the domain: the job that asks for it, and its record. */

import type { RecordedTurn, RolePolicy, ToolUse } from "@hone/agents";
import type { Outcome, Slot } from "@hone/core";
import type { OnNewVersion, Sample, SamplingParameters } from "@hone/rl";

/** One rollout to execute. */
export interface RolloutJob {
  readonly runId: string;
  readonly slot: Slot;
  readonly runSeed: number;
  readonly task: JobTask;
  readonly agentName: string;
  /** The agent's configuration; undefined = the agent's defaults. */
  readonly agentConfigJson: string | undefined;
  /** Modules with the run's own agents and tools, as paths below HONE_FILES. */
  readonly agentModules: readonly string[];
  /** A script that replaces the model; undefined = the model. */
  readonly scriptedPolicy: string | undefined;
  /** An external model that replaces the model; undefined = the model. */
  readonly endpoint: JobEndpoint | undefined;
  readonly sampling: SamplingParameters;
  readonly limits: RolloutLimits;
  readonly lowestVersion: number;
  readonly highestVersion: number;
  /** The roles that the run names, and who plays them; absent = it names none. */
  readonly roles?: ReadonlyMap<string, RolePolicy> | undefined;
  /** It is of no use once the policy is more than this many versions ahead of its first token; undefined = only the range counts. */
  readonly maxStaleness: number | undefined;
  /** What happens to its generations under way when a newer version is loaded. @default recompute */
  readonly onNewVersion?: OnNewVersion;
  /** How often the run had been resumed after a failure. */
  readonly resumption: number;
  /** Folder of the tokenizer's files, below the state folder, and their digest. */
  readonly tokenizerPath: string;
  readonly tokenizerDigest: string;
}

/** A model behind an OpenAI-compatible API. */
export interface JobEndpoint {
  readonly baseUrl: string;
  readonly model: string;
  /** Variable of this service that holds its key. */
  readonly keyVariable: string | undefined;
  readonly concurrency: number;
}

/** A dataset row, or an environment with a seed. */
export interface JobTask {
  readonly id: string;
  /** Name of the part of a mix; absent = none. */
  readonly part?: string;
  readonly environment:
    | { readonly name: string; readonly seed: number; readonly configJson: string }
    | undefined;
  /** All the columns of the row; undefined for an environment. */
  readonly row: Readonly<Record<string, unknown>> | undefined;
}

/** Limits of one rollout. */
export interface RolloutLimits {
  readonly maxTurns: number;
  /** Most tokens in one sample, prompt included. */
  readonly maxContextTokens: number;
  /** Time for one attempt; waits for Hone's own parts do not count. */
  readonly deadlineMs: number;
  /** Most attempts, if they fail for reasons outside the agent. */
  readonly maxAttempts: number;
}

/** The record of a rollout that has ended. */
export interface RolloutRecord {
  /** Number of the last attempt, from 1. */
  readonly attempt: number;
  readonly outcome: Outcome;
  /** The reason for the outcome; empty for completed. */
  readonly reason: string;
  readonly samples: readonly Sample[];
  readonly turns: readonly RecordedTurn[];
  readonly metrics: Readonly<Record<string, number>>;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Ordered by the names of the tools. */
  readonly toolUses: readonly ToolUse[];
  /** Sum of the environment's rewards. */
  readonly environmentReturn: number;
  /** What the agent says that single roles earned; absent = it says nothing of roles. */
  readonly roleRewards?: Readonly<Record<string, number>> | undefined;
  /** Name of the state in which the environment was left; undefined = there was none, or it was not reset. */
  readonly environmentState?: string | undefined;
  /** Why the earlier attempts failed. */
  readonly failedAttempts: readonly string[];
  readonly durationMs: number;
  readonly generationMs: number;
  /** SHA-256 of the keys of its sessions that may give rewards. */
  readonly sessionKeyDigests: readonly Uint8Array[];
}
