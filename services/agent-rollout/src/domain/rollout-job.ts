/** What the domain knows of a rollout: what is asked for, and what came of it. */

import type { RecordedTurn, SamplingParameters, ToolUse } from "@hone/agents";
import type { Outcome, Slot } from "@hone/core";
import type { Sample } from "@hone/rl";

/** One rollout to execute. */
export interface RolloutJob {
  readonly runId: string;
  readonly slot: Slot;
  readonly runSeed: number;
  readonly task: JobTask;
  readonly agentName: string;
  /** Undefined = the agent's defaults. */
  readonly agentConfigJson: string | undefined;
  /** The run's own agents and tools: files below HONE_FILES. */
  readonly agentModules: readonly string[];
  /** A script that takes the model's place; undefined = the model. */
  readonly scriptedPolicy: string | undefined;
  /** A model outside that takes the model's place; undefined = the model. */
  readonly endpoint: JobEndpoint | undefined;
  readonly sampling: SamplingParameters;
  readonly limits: RolloutLimits;
  readonly lowestVersion: number;
  readonly highestVersion: number;
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
  readonly environment:
    | { readonly name: string; readonly seed: number; readonly configJson: string }
    | undefined;
  /** All the columns of the row; undefined for an environment. */
  readonly row: Readonly<Record<string, unknown>> | undefined;
}

/** Bounds on one rollout. */
export interface RolloutLimits {
  readonly maxTurns: number;
  /** Most tokens in one sample, prompt included. */
  readonly maxContextTokens: number;
  /** For one attempt; waits for Hone's own parts do not count. */
  readonly deadlineMs: number;
  /** Attempts that may fail for a reason outside the agent. */
  readonly maxAttempts: number;
}

/** A rollout as it ended. */
export interface RolloutRecord {
  /** From 1. */
  readonly attempt: number;
  readonly outcome: Outcome;
  /** Why it ended so; empty for completed. */
  readonly reason: string;
  readonly samples: readonly Sample[];
  readonly turns: readonly RecordedTurn[];
  readonly metrics: Readonly<Record<string, number>>;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** In order of their names. */
  readonly toolUses: readonly ToolUse[];
  /** Sum of the rewards that the environment gave. */
  readonly environmentReturn: number;
  /** Reasons of the attempts before. */
  readonly failedAttempts: readonly string[];
  readonly durationMs: number;
  readonly generationMs: number;
}
