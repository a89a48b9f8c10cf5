/** Reads this service's configuration from its environment. */

import { BoundKeys, type CodeGate, environmentInteger, readCodeGate, readEnvironment } from "@hone/config";
import { defaultProcesses } from "@hone/sandbox";
import {
  type BaseConfig,
  type Environment,
  readBaseConfig,
  readSecretSetting,
  SettingError,
} from "@hone/service-kit";
import { z } from "zod";
import { Endpoints } from "./domain/endpoints.ts";

/** Names of this service's own variables. */
export const EnvironmentVariable = {
  /** Most rollouts at once. */
  concurrency: "HONE_ROLLOUT_CONCURRENCY",
  /** Most processes that run a model's code at once. */
  sandboxProcesses: "HONE_ROLLOUT_SANDBOX_PROCESSES",
  /** Folder of wheels that run files may name for a model's code; absent = the standard library alone. */
  sandboxPackages: "HONE_SANDBOX_PACKAGES",
  /** A replica of the policy that sends nothing for this long is considered dead, milliseconds. */
  policyIdleTimeoutMs: "HONE_POLICY_IDLE_TIMEOUT_MS",
  /** Address at which external agents reach this process; absent = where it listens. */
  sessionUrl: "HONE_SESSION_URL",
  /** Key with which clients begin episodes; absent = there are no clients. */
  swarmKey: "HONE_SWARM_KEY",
  /** File that holds it, as a mounted secret. */
  swarmKeyFile: "HONE_SWARM_KEY_FILE",
} as const;

/** Prefix of the variables that agents' files may name for the servers of their tools. */
const TOOL_SECRET_PREFIX = "HONE_TOOL_";
/** Enough to fill an engine's batch several times over; a waiting rollout of a short game takes 60 KiB. */
const DEFAULT_CONCURRENCY = 512;
/** A key that somebody might guess protects nothing. */
const SWARM_KEY = /^\S{16,512}$/;
/** The time of several heartbeats of a gateway. */
const DEFAULT_POLICY_IDLE_TIMEOUT_MS = 6_000;

export interface AgentRolloutConfig extends BaseConfig {
  readonly concurrency: number;
  readonly sandboxProcesses: number;
  /** Folder of wheels for the sandbox; undefined = there are no packages. */
  readonly sandboxPackages: string | undefined;
  readonly policyIdleTimeoutMs: number;
  /** The secrets for tools: all variables whose names begin with HONE_TOOL_. */
  readonly toolSecrets: BoundKeys;
  /** External models and their keys. */
  readonly endpoints: Endpoints;
  /** Decides which programs and modules run files may name. */
  readonly gate: CodeGate;
  /** Address for external agents, without a slash at its end; undefined = where this process listens. */
  readonly sessionUrl: string | undefined;
  /** Key with which clients begin episodes; undefined = there are no clients. */
  readonly swarmKey: string | undefined;
}

/** @throws {ConfigError} that names every variable that is wrong. */
export function readConfig(environment: Environment): AgentRolloutConfig {
  const own = readEnvironment(
    z.object({
      [EnvironmentVariable.concurrency]: environmentInteger(1, 100_000).default(DEFAULT_CONCURRENCY),
      [EnvironmentVariable.sandboxProcesses]: environmentInteger(1, 256).default(defaultProcesses),
      [EnvironmentVariable.sandboxPackages]: z.string().min(1).optional(),
      [EnvironmentVariable.policyIdleTimeoutMs]: environmentInteger(100, 600_000).default(
        DEFAULT_POLICY_IDLE_TIMEOUT_MS,
      ),
      [EnvironmentVariable.sessionUrl]: z
        .url({ protocol: /^https?$/, error: "an address that begins with http:// or https://" })
        .optional(),
      [EnvironmentVariable.swarmKey]: z.string().optional(),
      [EnvironmentVariable.swarmKeyFile]: z.string().optional(),
    }),
    environment,
  );
  const base = readBaseConfig(environment);
  const swarmKey = readSecretSetting(own, EnvironmentVariable.swarmKey);
  if (swarmKey !== undefined && !SWARM_KEY.test(swarmKey)) {
    // The error does not repeat a secret.
    throw new SettingError(
      EnvironmentVariable.swarmKey,
      "must have 16 to 512 characters and no spaces",
      `a text of ${swarmKey.length} characters`,
    );
  }
  return {
    ...base,
    concurrency: own.HONE_ROLLOUT_CONCURRENCY,
    sandboxProcesses: own.HONE_ROLLOUT_SANDBOX_PROCESSES,
    sandboxPackages: own.HONE_SANDBOX_PACKAGES,
    policyIdleTimeoutMs: own.HONE_POLICY_IDLE_TIMEOUT_MS,
    endpoints: new Endpoints(environment),
    gate: readCodeGate(environment, base.filesDir),
    sessionUrl: own.HONE_SESSION_URL?.replace(/\/+$/, ""),
    swarmKey,
    toolSecrets: new BoundKeys(TOOL_SECRET_PREFIX, environment, "agent-rollout"),
  };
}
