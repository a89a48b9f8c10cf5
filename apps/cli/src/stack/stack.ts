/**
 * The whole of Hone on one machine: bus, database and six services, some in several processes, kept running.
 *
 * T1: bus, database and services start all at once: a service loads its code while it waits for the file that tells
 *     where its server is. Each is started again when it dies, on the port that it had, so that the others find it again.
 * T2: `stop` is idempotent, ordered and bounded: services drain by STOP_ORDER, then the bus and the database end.
 * T3: what was started is ended when a later part fails to start.
 * T4: HONE_NATS_URL and HONE_DATABASE_URL name servers that are used instead of embedded ones, and never ended.
 * T5: who runs but does not answer is told of in the stack file, and left alone.
 * T6: in one process, as a debugger wants them, services are started, told of and ended as child processes are.
 */

import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  freePort,
  isPortFree,
  LOOPBACK,
  PRIVATE_FILE,
  privateFolder,
  privatePassage,
  type RunningServer,
  type StartError,
  type Supervised,
  type SupervisedEvent,
  supervise,
} from "@hone/embedded";
import type { Project } from "../project.ts";
import { watchAnswers } from "./health/answer-watch.ts";
import { answersHttp, answersNats, answersPostgres } from "./health/probes.ts";
import { type Replicas, replicasOf } from "./replicas.ts";
import { httpToken } from "./secrets/http-token.ts";
import { startServers } from "./servers.ts";
import {
  isBadSettings,
  type RunningService,
  SERVICE_GRACE_MS,
  type ServiceSettings,
  serviceEnvironment,
  startServiceProcess,
} from "./service-process.ts";
import { replicaOf, SERVICES, type ServiceName, type ServiceReplica, STOP_ORDER } from "./services.ts";
import type { StackEvent } from "./stack-event.ts";
import { takeStackLock, writeStack } from "./stack-file.ts";

export interface StartStackOptions {
  readonly onEvent?: (event: StackEvent) => void;
  readonly signal: AbortSignal;
  readonly replicas: Replicas;
  /** Whether the services run in this process instead of in one each. @default false */
  readonly isInProcess?: boolean;
  /** @default "info" */
  readonly logLevel?: string;
}

export interface Stack extends AsyncDisposable {
  readonly natsUrl: string;
  /** Without a password. */
  readonly databaseUrl: string;
  /** The tracer's page. */
  readonly pageUrl: string;
  /** That of the page. */
  readonly token: string;
  /** Resolves with the reason when a part stays down; the stack is then of no use and its owner stops it. */
  readonly failed: Promise<StartError>;
  /** @param isHurried gives everything a second instead of its grace time. */
  stop(options?: { readonly isHurried?: boolean }): Promise<void>;
}

const HURRIED_GRACE_MS = 1_000;
const SERVER_GRACE_MS = 10_000;

/**
 * @throws {UsageError} when a stack runs in this project already.
 * @throws {ProgramMissingError | StateFolderError | StartError} when a part cannot be started.
 */
export async function startStack(project: Project, options: StartStackOptions): Promise<Stack> {
  const lock = takeStackLock(project);
  const servers: Supervised<RunningServer>[] = [];
  const replicas = replicasOf(options.replicas);
  /** By name of the process. */
  const services = new Map<string, Supervised<RunningService>>();
  const abandon = new AbortController();
  const signal = AbortSignal.any([options.signal, abandon.signal]);
  let stopping: Promise<void> | undefined;
  let isHurried = false;
  const stop: Stack["stop"] = (stopOptions = {}) => {
    stopping ??= stopAll();
    if (stopOptions.isHurried === true && !isHurried) {
      isHurried = true;
      // What drains gets a second from now; the ordered stop below then goes on by itself.
      for (const each of [...services.values(), ...servers]) void each.stop({ graceMs: HURRIED_GRACE_MS });
    }
    return stopping;
  };
  async function stopAll(): Promise<void> {
    abandon.abort();
    for (const stage of STOP_ORDER) {
      const ending = replicas.filter(({ service }) => stage.includes(service));
      await Promise.all(ending.map(({ name }) => services.get(name)?.stop({ graceMs: SERVICE_GRACE_MS })));
    }
    await Promise.all(servers.map((each) => each.stop({ graceMs: SERVER_GRACE_MS })));
    lock.release();
  }

  try {
    await privatePassage(project.state);
    await Promise.all([project.logs, project.ready].map(privateFolder));
    const tell = options.onEvent ?? (() => undefined);
    // The tracer's port is chosen before it runs, so that all can start at once and know where to send spans.
    const tracerPort = await freePort();
    const token = await httpToken(project);
    const pageUrl = `http://${LOOPBACK}:${tracerPort}`;
    const startedAtMs = Date.now();
    const { nats, postgres, isProgramThere } = await startServers(project, { servers, tell, signal });
    const common = { tracerUrl: pageUrl, logLevel: options.logLevel ?? "info" };
    const settingsOf = (name: ServiceName): ServiceSettings => ({
      nats: nats.addressOf(name),
      database: postgres.addressOf(name),
      ...common,
    });
    let silent: Readonly<Record<string, number>> = {};
    let addresses: { readonly natsUrl: string; readonly databaseUrl: string } | undefined;
    const record = () => {
      if (addresses === undefined) return; // nothing is told of a stack that is not up
      writeStack(project, {
        startedAtMs,
        ...addresses,
        pageUrl,
        token,
        replicas: options.replicas,
        services: Object.fromEntries(replicas.flatMap(({ name }) => serviceRecord(name, services.get(name)))),
        silent,
      });
    };
    const startOne = async (replica: ServiceReplica) => {
      const { service, name } = replica;
      await isProgramThere;
      signal.throwIfAborted();
      tell({ kind: "progress", text: "starting bus, database and services" });
      let lastReason = "";
      const onEvent = (event: SupervisedEvent) => {
        if (event.kind === "ended") lastReason = event.reason;
        if (event.kind !== "started" || event.restarts === 0) return;
        tell({ kind: "restarted", name, reason: lastReason, restarts: event.restarts });
        record();
      };
      const port = service === "tracer" ? tracerPort : 0;
      const start = options.isInProcess === true ? await inThisProcess() : startServiceProcess;
      const begin: StartAt = (at, startSignal) =>
        start(project, replica, settingsOf(service), at, startSignal);
      services.set(name, await superviseService(replica, begin, port, signal, onEvent));
    };
    await allOrNothing([nats.url, postgres.url, ...replicas.map(startOne)], abandon);
    const natsUrl = await nats.url;
    const databaseUrl = await postgres.url;
    addresses = { natsUrl, databaseUrl };
    await writeEnvironments(project, settingsOf, tracerPort);
    record();
    void watchAnswers({
      probes: () => ({
        "nats-server": () => answersNats(natsUrl),
        postgres: () => answersPostgres(databaseUrl),
        ...serviceProbes(services),
      }),
      onChange: (now) => {
        silent = now;
        record();
      },
      signal: abandon.signal,
    });
    return {
      natsUrl,
      databaseUrl,
      pageUrl,
      token,
      failed: Promise.race([...servers, ...services.values()].map((each) => each.gaveUp)),
      stop,
      [Symbol.asyncDispose]: () => stop(),
    };
  } catch (error) {
    await stop(); // T3
    throw error;
  }
}

/** T6. Loads the code of services only where it is asked for. */
async function inThisProcess(): Promise<typeof startServiceProcess> {
  return (await import("./service-in-process.ts")).startServiceInProcess;
}

/** Starts a service on a port, 0 = any free one. */
type StartAt = (port: number, signal: AbortSignal) => Promise<RunningService>;

async function superviseService(
  replica: ServiceReplica,
  begin: StartAt,
  wantedPort: number,
  signal: AbortSignal,
  onEvent: (event: SupervisedEvent) => void,
): Promise<Supervised<RunningService>> {
  let port = wantedPort;
  return supervise({
    name: replica.name,
    signal,
    isFatal: isBadSettings,
    onEvent,
    start: async (startSignal) => {
      // The port that it had; should somebody have taken it meanwhile, any other (the tracer's is in its address).
      const isTaken = port !== 0 && replica.service !== "tracer" && !(await isPortFree(port));
      const service = await begin(isTaken ? 0 : port, startSignal);
      port = service.httpPort;
      return service;
    },
  });
}

/** Waits for all; on the first failure the others are given up and waited for, so that nothing is left behind (T3). */
async function allOrNothing<T extends readonly unknown[]>(
  promises: { readonly [Index in keyof T]: Promise<T[Index]> },
  abandon: AbortController,
): Promise<T> {
  try {
    return (await Promise.all(promises)) as unknown as T;
  } catch (error) {
    abandon.abort(error);
    await Promise.allSettled(promises);
    throw error;
  }
}

/** T5: asked over HTTP, so that a bus that is away silences nobody. */
function serviceProbes(
  services: ReadonlyMap<string, Supervised<RunningService>>,
): Record<string, () => Promise<boolean>> {
  const probes: Record<string, () => Promise<boolean>> = {};
  for (const [name, { current }] of services) {
    if (current !== undefined) probes[name] = () => answersHttp(current.httpPort);
  }
  return probes;
}

function serviceRecord(name: string, each: Supervised<RunningService> | undefined) {
  const child = each?.current;
  if (each === undefined || child === undefined) return [];
  return [[name, { pid: child.pid, httpPort: child.httpPort, restarts: each.restarts }] as const];
}

/** For services that an editor starts on this stack's bus and database, each as itself and with its own rights. */
async function writeEnvironments(
  project: Project,
  settingsOf: (service: ServiceName) => ServiceSettings,
  tracerPort: number,
): Promise<void> {
  // An earlier version's one file for all of them, with the passwords of those who may do everything.
  await rm(join(project.state, "service.env"), { force: true });
  await privateFolder(project.environments);
  await Promise.all(
    SERVICES.map(async (name) => {
      const port = name === "tracer" ? tracerPort : 0;
      const env = {
        ...serviceEnvironment(project, replicaOf(name, 0), settingsOf(name), port),
        HONE_READY_FILE: "",
        HONE_INSTANCE_ID: "debugger",
      };
      const lines = Object.entries(env).map(([key, value]) => `${key}=${value}\n`);
      const file = join(project.environments, `${name}.env`);
      await writeFile(file, lines.join(""), { mode: PRIVATE_FILE });
    }),
  );
}
