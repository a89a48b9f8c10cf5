/** Reads this service's configuration from its environment. */

import { createHash } from "node:crypto";
import { hostname } from "node:os";
import { resolve } from "node:path";
import { BoundKeys, type CodeGate, environmentInteger, readCodeGate, readEnvironment } from "@hone/config";
import { type ContainerHostOptions, defaultProcesses } from "@hone/sandbox";
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
  /** Unix socket of Docker or Podman, with which tools make containers; absent = there are none. */
  containerSocket: "HONE_CONTAINER_SOCKET",
  /** Images that run files and rows may name, separated by commas; a `*` at the end stands for any end. */
  containerImages: "HONE_CONTAINER_IMAGES",
  /** Most containers at once. */
  containers: "HONE_CONTAINERS",
  /** The most memory that a container may ask for, MiB. */
  containerMemoryMib: "HONE_CONTAINER_MEMORY_MIB",
  /** The most processors that a container may ask for. */
  containerCpus: "HONE_CONTAINER_CPUS",
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

/** With a gigabyte each, what a large machine has. */
const DEFAULT_CONTAINERS = 16;

export interface AgentRolloutConfig extends BaseConfig {
  readonly concurrency: number;
  readonly sandboxProcesses: number;
  /** Folder of wheels for the sandbox; undefined = there are no packages. */
  readonly sandboxPackages: string | undefined;
  /** What tools may do with containers; undefined = there are none. */
  readonly containers: ContainerHostOptions | undefined;
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
      [EnvironmentVariable.containerSocket]: z.string().min(1).optional(),
      [EnvironmentVariable.containerImages]: z
        .string()
        .default("")
        .transform((text) =>
          text
            .split(",")
            .map((name) => name.trim())
            .filter((name) => name !== ""),
        ),
      [EnvironmentVariable.containers]: environmentInteger(1, 10_000).default(DEFAULT_CONTAINERS),
      [EnvironmentVariable.containerMemoryMib]: environmentInteger(16, 1_048_576).default(2_048),
      [EnvironmentVariable.containerCpus]: environmentInteger(1, 256).default(2),
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
    sandboxPackages: own.HONE_SANDBOX_PACKAGES && resolve(own.HONE_SANDBOX_PACKAGES),
    containers:
      own.HONE_CONTAINER_SOCKET === undefined
        ? undefined
        : {
            socketPath: resolve(own.HONE_CONTAINER_SOCKET),
            images: own.HONE_CONTAINER_IMAGES,
            owner: ownerOf(base),
            maxContainers: own.HONE_CONTAINERS,
            maxMemoryMib: own.HONE_CONTAINER_MEMORY_MIB,
            maxCpus: own.HONE_CONTAINER_CPUS,
          },
    policyIdleTimeoutMs: own.HONE_POLICY_IDLE_TIMEOUT_MS,
    endpoints: new Endpoints(environment),
    gate: readCodeGate(environment, base.filesDir),
    sessionUrl: own.HONE_SESSION_URL?.replace(/\/+$/, ""),
    swarmKey,
    toolSecrets: new BoundKeys(TOOL_SECRET_PREFIX, environment, "agent-rollout"),
  };
}

/** A name for this service that it keeps across restarts, and that no other one has that may use the same container runtime. */
function ownerOf({ stateDir, instanceId }: BaseConfig): string {
  return createHash("sha256")
    .update([hostname(), stateDir, instanceId].join("\0"))
    .digest("hex")
    .slice(0, 32);
}
