/**
 * Runs all of Hone on one machine: bus, database and six services, some in several processes.
 *
 * T1: bus, database and services start all at once. A service loads its code while it waits for the file with the address of its
 *     server. Each process that dies is restarted on the same port, so that the others find it again.
 * T2: `stop` is idempotent, ordered and limited in time: services drain in STOP_ORDER, then the bus and the database stop.
 * T3: if one part fails to start, the parts that were started are stopped.
 * T4: HONE_NATS_URL and HONE_DATABASE_URL name servers that are used instead of embedded ones, and never stopped.
 * T5: a process that runs but does not answer is listed in the stack file, and not restarted.
 * T6: if the services run in this process, for a debugger, they are started, reported and stopped like child processes.
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
  StartError,
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
  /** Whether the services run in this process instead of child processes. @default false */
  readonly isInProcess?: boolean;
  /** Chooses the tracer's port. @default a port that is free now */
  readonly choosePort?: () => Promise<number>;
  /** @default "info" */
  readonly logLevel?: string;
}

export interface Stack extends AsyncDisposable {
  readonly natsUrl: string;
  /** Address of the database without a password. */
  readonly databaseUrl: string;
  /** Address of the tracer's page. */
  readonly pageUrl: string;
  /** Token for the page. */
  readonly token: string;
  /** Resolves with the reason when a part cannot be restarted; the stack's owner must then stop the stack. */
  readonly failed: Promise<StartError>;
  /** Stops the stack. @param isHurried gives each process one second instead of its grace time. */
  stop(options?: { readonly isHurried?: boolean }): Promise<void>;
}

const HURRIED_GRACE_MS = 1_000;
const SERVER_GRACE_MS = 10_000;

/** Another program may take the tracer's port before the tracer listens on it, so several ports are tried. */
const PORT_ATTEMPTS = 3;

/**
 * @throws {UsageError} when a stack runs in this project already.
 * @throws {ProgramMissingError | StateFolderError | StartError} when a part cannot be started.
 */
export async function startStack(project: Project, options: StartStackOptions): Promise<Stack> {
  for (let attempt = 1; ; attempt++) {
    // The tracer's port is chosen first, so that all services can start at once and know where to send spans.
    const tracerPort = await (options.choosePort ?? freePort)();
    try {
      return await startWithTracerAt(tracerPort, project, options);
    } catch (error) {
      const isPortLost = error instanceof StartError && !(await isPortFree(tracerPort));
      if (!isPortLost || attempt === PORT_ATTEMPTS || options.signal.aborted) throw error;
    }
  }
}

async function startWithTracerAt(
  tracerPort: number,
  project: Project,
  options: StartStackOptions,
): Promise<Stack> {
  const lock = takeStackLock(project);
  const servers: Supervised<RunningServer>[] = [];
  const replicas = replicasOf(options.replicas);
  /** Services by the name of their process. */
  const services = new Map<string, Supervised<RunningService>>();
  const abandon = new AbortController();
  const signal = AbortSignal.any([options.signal, abandon.signal]);
  let stopping: Promise<void> | undefined;
  let isHurried = false;
  const stop: Stack["stop"] = (stopOptions = {}) => {
    stopping ??= stopAll();
    if (stopOptions.isHurried === true && !isHurried) {
      isHurried = true;
      // Processes that still drain get one more second; the ordered stop below then continues by itself.
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
      if (addresses === undefined) return; // the stack file is written once the stack is up
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
      const start = options.isInProcess === true ? await loadInProcessStart() : startServiceProcess;
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

/** Loads the code of the services, which only a stack in one process needs (T6). */
async function loadInProcessStart(): Promise<typeof startServiceProcess> {
  return (await import("./service-in-process.ts")).startServiceInProcess;
}

/** Starts a service on a port; 0 = any free one. */
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
      // The same port as before. If another program has taken it, any other one, but not for the tracer, whose address is known.
      const isTaken = port !== 0 && replica.service !== "tracer" && !(await isPortFree(port));
      const service = await begin(isTaken ? 0 : port, startSignal);
      port = service.httpPort;
      return service;
    },
  });
}

/** Waits for all. On the first failure the others are aborted and waited for, so that no process is left (T3). */
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

/** Probes of services (T5), over HTTP, so that they succeed without the bus. */
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

/** Writes the settings for services that an editor starts on this stack's bus and database, each with its own rights. */
async function writeEnvironments(
  project: Project,
  settingsOf: (service: ServiceName) => ServiceSettings,
  tracerPort: number,
): Promise<void> {
  // An earlier version's file for all services, which holds passwords of superusers.
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
