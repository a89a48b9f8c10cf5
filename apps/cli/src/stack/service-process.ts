/**
 * One service as a child process: the contract with `libs/service-kit`.
 *
 * A service gets its settings as environment variables, writes its ready file (with its pid and port) when it can
 * work, answers /livez and /readyz, drains on SIGTERM, and exits with 2 when its settings are wrong.
 */

import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Child, type ChildExit, spawnChild, untilReady, withLargeArrays } from "@hone/embedded";
import { inboxPrefixOf, StreamsRole } from "@hone/messaging";
import { OWN_CODE, type Project, REPOSITORY } from "../project.ts";
import { type ServiceName, type ServiceReplica, STOP_ORDER } from "./services.ts";

/**
 * V8 lets a heap grow to several times what lives in it before it collects, and takes up to 128 MB for what is young. With
 * 10,000 open rollouts agent-rollout goes to 1.5 GiB that way, and stays below 1 GiB with these (docs/performance.md,
 * Load). There they cost a tenth of the episodes per second, so they are for many rollouts only. A trainer has a heap for each
 * thread of each run's engine, of which little is ever young. Both can only be told at a process's start.
 */
const LEAN_HEAP: Readonly<Partial<Record<ServiceName, readonly string[]>>> = {
  "agent-rollout": ["--heap-growing-percent=15", "--max-semi-space-size=8"],
  trainer: ["--heap-growing-percent=15", "--max-semi-space-size=2"],
};
/** Of one process of agent-rollout. */
const MANY_ROLLOUTS = 2_048;

/** Where a server is, or the file that tells it as soon as it is there. */
export type ServerAddress = { readonly url: string } | { readonly file: string };

/** Where the bus is for a service. */
export interface BusAddress {
  readonly server: ServerAddress;
  /**
   * Whether it is the stack's own, with a user for each service: answers then come below the service's own prefix, and the
   * streams are made by the stack.
   */
  readonly isEmbedded: boolean;
}

/** What all services of a stack share. */
export interface ServiceSettings {
  readonly nats: BusAddress;
  /** Undefined for a service that keeps no rows: it is told of none, also where this process has the address of one. */
  readonly database: ServerAddress | undefined;
  /** The stack's tracer, whose token lies in the project; empty for a service without a stack, whose spans it does not get. */
  readonly tracerUrl: string;
  readonly logLevel: string;
  /** The service's own variables. */
  readonly own?: Readonly<Record<string, string>>;
}

export interface RunningService extends Child {
  readonly httpPort: number;
}

/** Six Node processes starting on two busy cores, behind a database that is made, or recovers for as long as it may. */
export const START_DEADLINE_MS = 180_000;
/** Services drain within 8 s by themselves; the rest is for a busy machine. */
export const SERVICE_GRACE_MS = 10_000;
const BAD_SETTINGS = 2;
const MAX_PORT = 65_535;

/** A service that says so cannot be helped by starting it again. */
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
    // Whoever publishes runs here works on this machine, with its own rights.
    ...OWN_CODE,
    HONE_HTTP_HOST: "127.0.0.1",
    HONE_HTTP_PORT: String(httpPort),
    HONE_READY_FILE: readyFileOf(project, name),
    HONE_LOG_LEVEL: settings.logLevel,
    // Fixed, so that a trainer that is started again takes up its runs without waiting for its own lease to end.
    HONE_INSTANCE_ID: `${service}-${index}`,
    HONE_TRACER_URL: settings.tracerUrl,
    // One that the user's environment gives would stand for six services. All else that it says to OpenTelemetry holds.
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

/** What opens a database, for who keeps rows in it. The user may give the tracer one of its own. */
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

/** An empty variable counts as absent, and hides one of this process. */
function addressVariables(name: string, address: ServerAddress): Record<string, string> {
  return "url" in address
    ? { [name]: address.url, [`${name}_FILE`]: "" }
    : { [name]: "", [`${name}_FILE`]: address.file };
}

/**
 * Starts a service and waits until it is ready.
 * @param httpPort 0 = any free one; the result tells which.
 * @throws {StartError} when it does not get there.
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

/** Gateway and trainer hold models. */
function processEnvironment(service: ServiceName, environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const hasEngine = service === "inference-gateway" || service === "trainer";
  return hasEngine ? withLargeArrays(environment) : environment;
}

function nodeFlags(service: ServiceName): readonly string[] {
  const isLarge = Number(process.env.HONE_ROLLOUT_CONCURRENCY ?? 0) > MANY_ROLLOUTS;
  return isLarge ? (LEAN_HEAP[service] ?? []) : [];
}

/** For the watchdog: higher stages end first, and the bus and the database have 0. */
function stopStage(name: ServiceName): number {
  return STOP_ORDER.length - STOP_ORDER.findIndex((names) => names.includes(name));
}

/** Undefined until this very process has written the file. */
async function readyPort(readyFile: string, pid: number): Promise<number | undefined> {
  return portOf(JSON.parse(await readFile(readyFile, "utf8")), pid);
}

/** The port that a ready file of this process names; undefined for anything else. */
export function portOf(content: unknown, pid: number): number | undefined {
  if (typeof content !== "object" || content === null) return undefined;
  const { pid: writer, httpPort } = content as { readonly pid?: unknown; readonly httpPort?: unknown };
  const isPort = typeof httpPort === "number" && Number.isInteger(httpPort) && httpPort > 0;
  return writer === pid && isPort && httpPort <= MAX_PORT ? httpPort : undefined;
}
