/** This service's configuration from its environment. */

import { environmentInteger, readEnvironment } from "@hone/config";
import { type BaseConfig, type Environment, readBaseConfig } from "@hone/service-kit";
import { z } from "zod";
import { Endpoints } from "./domain/endpoints.ts";

/** Names of the variables. */
export const EnvironmentVariable = {
  /** Most rollouts at once. */
  concurrency: "HONE_ROLLOUT_CONCURRENCY",
  /** A replica of the policy that says nothing for this long is taken for dead, milliseconds. */
  policyIdleTimeoutMs: "HONE_POLICY_IDLE_TIMEOUT_MS",
  /** `allow` = run files may name commands as agents: they run with all rights of this process. */
  agentCommands: "HONE_AGENT_COMMANDS",
  /** Address at which agents outside reach this process; absent = where it listens. */
  sessionUrl: "HONE_SESSION_URL",
} as const;

/** What commands need of this process's environment to find programs, files and servers; no secrets. */
const COMMAND_VARIABLES = [
  "PATH",
  "HOME",
  "LANG",
  "LC_ALL",
  "TZ",
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
  "REQUESTS_CA_BUNDLE",
  "NODE_EXTRA_CA_CERTS",
];
/** Of variables that agents' files may name, for the servers of their tools. */
const TOOL_SECRET_PREFIX = "HONE_TOOL_";
/** Enough to fill an engine's batch several times over; a waiting rollout of a short game takes 60 KiB. */
const DEFAULT_CONCURRENCY = 512;
/** Several heartbeats of a gateway. */
const DEFAULT_POLICY_IDLE_TIMEOUT_MS = 6_000;

export interface AgentRolloutConfig extends BaseConfig {
  readonly concurrency: number;
  readonly policyIdleTimeoutMs: number;
  /** Variables that tools may be given: all whose names begin with HONE_TOOL_. */
  readonly toolSecrets: Readonly<Record<string, string>>;
  /** Keys of models outside, by the name of their variable. */
  readonly endpoints: Endpoints;
  /** Environment of commands as agents; undefined = they are not allowed. */
  readonly commandEnvironment: Readonly<Record<string, string>> | undefined;
  /** Without a slash at its end; undefined = where this process listens. */
  readonly sessionUrl: string | undefined;
}

/** @throws {ConfigError} with every variable that is wrong. */
export function readConfig(environment: Environment): AgentRolloutConfig {
  const own = readEnvironment(
    z.object({
      [EnvironmentVariable.concurrency]: environmentInteger(1, 100_000).default(DEFAULT_CONCURRENCY),
      [EnvironmentVariable.policyIdleTimeoutMs]: environmentInteger(100, 600_000).default(
        DEFAULT_POLICY_IDLE_TIMEOUT_MS,
      ),
      [EnvironmentVariable.agentCommands]: z.enum(["allow", "refuse"]).default("refuse"),
      [EnvironmentVariable.sessionUrl]: z
        .url({ protocol: /^https?$/, error: "an address that begins with http:// or https://" })
        .optional(),
    }),
    environment,
  );
  return {
    ...readBaseConfig(environment),
    concurrency: own.HONE_ROLLOUT_CONCURRENCY,
    policyIdleTimeoutMs: own.HONE_POLICY_IDLE_TIMEOUT_MS,
    endpoints: new Endpoints(environment),
    commandEnvironment: own.HONE_AGENT_COMMANDS === "allow" ? commandEnvironment(environment) : undefined,
    sessionUrl: own.HONE_SESSION_URL?.replace(/\/+$/, ""),
    toolSecrets: Object.fromEntries(
      Object.entries(environment).flatMap(([name, value]) =>
        name.startsWith(TOOL_SECRET_PREFIX) && value !== undefined ? [[name, value]] : [],
      ),
    ),
  };
}

function commandEnvironment(environment: Environment): Record<string, string> {
  return Object.fromEntries(
    COMMAND_VARIABLES.flatMap((name) => {
      const value = environment[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}
