/**
 * Runs a service as a child process, by its contract with `libs/service-kit`.
 *
 * A service gets its settings as environment variables, writes its ready file with its pid and port when it is ready, answers
 * /livez and /readyz, drains on SIGTERM, and exits with code 2 if its settings are wrong.
 */

import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import {
  type Child,
  type ChildExit,
  type EngineWork,
  spawnChild,
  untilReady,
  withLargeArrays,
} from "@hone/embedded";
import { inboxPrefixOf, StreamsRole } from "@hone/messaging";
import { OWN_CODE, type Project, REPOSITORY } from "../project.ts";
import { type ServiceName, type ServiceReplica, STOP_ORDER } from "./services.ts";

/**
 * V8 lets a heap grow to several times the size of its live objects, and uses up to 128 MB for young ones. With 10,000 open
 * rollouts agent-rollout would take 1.5 GiB; with these flags it stays below 1 GiB (docs/performance.md, Load). They cost a
 * tenth of the episodes per second, so they are used only for many rollouts. A trainer has a heap for each thread of each run's
 * engine, with few young objects. The flags can only be set when a process starts.
 */
const LEAN_HEAP: Readonly<Partial<Record<ServiceName, readonly string[]>>> = {
  "agent-rollout": ["--heap-growing-percent=15", "--max-semi-space-size=8"],
  trainer: ["--heap-growing-percent=15", "--max-semi-space-size=2"],
};
/** Open rollouts of one process of agent-rollout from which the flags are used. */
const MANY_ROLLOUTS = 2_048;

/** What the engines of services do that hold models. */
const ENGINE_WORK: Readonly<Partial<Record<ServiceName, EngineWork>>> = {
  "inference-gateway": "generation",
  trainer: "training",
};

/** The address of a server, or the file that holds it once the server answers. */
export type ServerAddress = { readonly url: string } | { readonly file: string };

/** The bus of a service. */
export interface BusAddress {
  readonly server: ServerAddress;
  /**
   * Whether the bus is embedded, with a user for each service. Replies then use the service's own inbox prefix, and the
   * stack creates the streams.
   */
  readonly isEmbedded: boolean;
}

/** The common settings of a stack's services. */
export interface ServiceSettings {
  readonly nats: BusAddress;
  /** Undefined for a service that does not use the database; it gets no address, even if this process has one. */
  readonly database: ServerAddress | undefined;
  /** Address of the stack's tracer, whose token is in the project; empty for a service without a stack, which sends it no spans. */
  readonly tracerUrl: string;
  readonly logLevel: string;
  /** The service's own variables. */
  readonly own?: Readonly<Record<string, string>>;
}

export interface RunningService extends Child {
  readonly httpPort: number;
}

/** Enough for six Node processes on two busy cores, and for a database that is created or recovers. */
export const START_DEADLINE_MS = 180_000;
/** Services drain within 8 s; the rest is for a busy machine. */
export const SERVICE_GRACE_MS = 10_000;
const BAD_SETTINGS = 2;
const MAX_PORT = 65_535;

/** Whether a service ended because its settings are wrong, so that a restart would not help. */
export function isBadSettings(exit: ChildExit): boolean {
  return exit.code === BAD_SETTINGS;
}

/** The environment variables of a service; see `libs/service-kit/src/settings/environment.ts`. */
export function serviceEnvironment(
  project: Project,
  { service, index, name }: ServiceReplica,
  settings: ServiceSettings,
  httpPort: number,
): Record<string, string> {
  return {
    ...addressVariables("HONE_NATS_URL", settings.nats.server),
    ...(settings.nats.isEmbedded && {
      HONE_NATS_INBOX_PREFIX: inboxPrefixOf(service),
      HONE_STREAMS: service === "trainer" ? StreamsRole.make : StreamsRole.await,
    }),
    ...databaseVariables(service, settings.database),
    HONE_STATE_DIR: project.state,
    HONE_FILES: project.folder,
    // Only the owner of the stack can publish runs here, so their code runs with the owner's rights.
    ...OWN_CODE,
    HONE_HTTP_HOST: "127.0.0.1",
    HONE_HTTP_PORT: String(httpPort),
    HONE_READY_FILE: readyFileOf(project, name),
    HONE_LOG_LEVEL: settings.logLevel,
    // Fixed, so that a restarted trainer continues its runs without waiting for the end of its own lease.
    HONE_INSTANCE_ID: `${service}-${index}`,
    HONE_TRACER_URL: settings.tracerUrl,
    // A name in the user's environment would apply to all six services. The user's other OTEL variables are kept.
    OTEL_SERVICE_NAME: service,
    HONE_TRACER_TOKEN: "",
    HONE_TRACER_TOKEN_FILE: settings.tracerUrl === "" ? "" : project.tokenFile,
    ...(service === "inference-gateway" &&
      settings.tracerUrl !== "" &&
      !hasOwnKey() && { HONE_INFERENCE_API_KEY_FILE: project.tokenFile }),
    ...settings.own,
  };
}

/** Whether the user gave the gateway's API a key. */
export function hasOwnKey(env: NodeJS.ProcessEnv = process.env): boolean {
  return [env.HONE_INFERENCE_API_KEY, env.HONE_INFERENCE_API_KEY_FILE].some((value) => (value ?? "") !== "");
}

function readyFileOf(project: Project, name: string): string {
  return join(project.ready, `${name}.json`);
}

/** The variables of the database for a service. The user may give the tracer its own database. */
function databaseVariables(
  service: ServiceReplica["service"],
  database: ServerAddress | undefined,
  env: NodeJS.ProcessEnv = process.env,
): Record<string, string> {
  const own = "HONE_TRACER_DATABASE_URL";
  const shared = addressVariables("HONE_DATABASE_URL", database ?? { url: "" });
  if (service !== "tracer") return { ...shared, ...addressVariables(own, { url: "" }) };
  const hasOwn = [env[own], env[`${own}_FILE`]].some((value) => (value ?? "") !== "");
  return hasOwn ? addressVariables("HONE_DATABASE_URL", { url: "" }) : shared;
}

/** The variables of an address. An empty variable counts as absent, and hides that of this process. */
function addressVariables(name: string, address: ServerAddress): Record<string, string> {
  return "url" in address
    ? { [name]: address.url, [`${name}_FILE`]: "" }
    : { [name]: "", [`${name}_FILE`]: address.file };
}

/**
 * Starts a service and waits until it is ready.
 * @param httpPort 0 = any free one; the result has the port.
 * @throws {StartError} when it does not become ready.
 */
export async function startServiceProcess(
  project: Project,
  replica: ServiceReplica,
  settings: ServiceSettings,
  httpPort: number,
  signal: AbortSignal,
): Promise<RunningService> {
  const { service, name } = replica;
  const readyFile = readyFileOf(project, name);
  await rm(readyFile, { force: true });
  const child = await spawnChild({
    name,
    command: process.execPath,
    args: [...nodeFlags(service), join(REPOSITORY, "services", service, "src", "main.ts")],
    cwd: project.folder,
    env: processEnvironment(service, {
      ...process.env,
      ...serviceEnvironment(project, replica, settings, httpPort),
    }),
    logFile: join(project.logs, `${name}.log`),
    graceMs: SERVICE_GRACE_MS,
    stage: stopStage(service),
  });
  const port = await untilReady(child, () => readyPort(readyFile, child.pid), {
    deadlineMs: START_DEADLINE_MS,
    signal,
  });
  return Object.assign(child, { httpPort: port });
}

/** Adds settings for large arrays to services that hold models. */
function processEnvironment(service: ServiceName, environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const work = ENGINE_WORK[service];
  return work === undefined ? environment : withLargeArrays(environment, work);
}

function nodeFlags(service: ServiceName): readonly string[] {
  const isLarge = Number(process.env.HONE_ROLLOUT_CONCURRENCY ?? 0) > MANY_ROLLOUTS;
  return isLarge ? (LEAN_HEAP[service] ?? []) : [];
}

/** The stage for the watchdog: higher stages are stopped first, and the bus and the database have stage 0. */
function stopStage(name: ServiceName): number {
  return STOP_ORDER.length - STOP_ORDER.findIndex((names) => names.includes(name));
}

/** @returns undefined until this process has written the file. */
async function readyPort(readyFile: string, pid: number): Promise<number | undefined> {
  return portOf(JSON.parse(await readFile(readyFile, "utf8")), pid);
}

/** The port in the ready file of this process; undefined for other content. */
export function portOf(content: unknown, pid: number): number | undefined {
  if (typeof content !== "object" || content === null) return undefined;
  const { pid: writer, httpPort } = content as { readonly pid?: unknown; readonly httpPort?: unknown };
  const isPort = typeof httpPort === "number" && Number.isInteger(httpPort) && httpPort > 0;
  return writer === pid && isPort && httpPort <= MAX_PORT ? httpPort : undefined;
}
