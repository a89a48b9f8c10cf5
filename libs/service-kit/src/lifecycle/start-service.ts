/**
 * Starting and stopping one service, without touching `process`: several may live in one process.
 *
 *   listen (alive, not ready) -> connect the bus -> start the service -> ready -> write the ready file
 *   stop: not ready -> drain (stops the intake first) -> flush telemetry -> close service, database, bus, HTTP
 *
 * K1: HTTP answers from the first moment to the last, so that probes always hear why the service is not ready.
 * K2: what was opened is closed in the reverse order, also when the start fails halfway.
 * K3: `stop` is idempotent: every caller gets the same report.
 */

import { delay, raceAbortable } from "@hone/core";
import {
  type Bus,
  connectBus,
  ensureTopology,
  payloadWriterOf,
  respondToHealth,
  StreamsRole,
} from "@hone/messaging";
import type { Database } from "@hone/storage";
import { createLogger, type Logger, redactText } from "@hone/telemetry";
import { watchBus } from "../beside/bus-health.ts";
import { keepDurables } from "../beside/keep-durables.ts";
import { keepPayloads } from "../beside/keep-payloads.ts";
import { SettingError, StoppingError } from "../errors.ts";
import { healthRoutes } from "../http/health-routes.ts";
import { type HttpServer, startHttpServer } from "../http/http-server.ts";
import { resolveAddress } from "../http/server-address.ts";
import { type BaseConfig, EnvironmentVariable } from "../settings/environment.ts";
import {
  notReady,
  READY,
  type Readiness,
  type ReadinessCheck,
  type ReadinessReport,
  reportReadiness,
} from "./readiness.ts";
import { removeOwnReadyFile, removeReadyFile, writeReadyFile } from "./ready-file.ts";
import type { DatabaseNeeds, HttpAddress, Service, ServiceDefinition } from "./service.ts";
import { runStages, type Stage, type StopReport } from "./stages.ts";

export interface StartServiceOptions<Config extends BaseConfig> {
  /** What the definition's `readConfig` gave. */
  readonly config: Config;
  /** @default one that writes to standard error */
  readonly logger?: Logger | undefined;
  /** Gives the start up. A service that runs is ended by `stop`. */
  readonly signal?: AbortSignal | undefined;
  /** Called while the bus is being connected, and awaited before the service's own start; what it throws ends the start. */
  readonly prepare?: (() => Promise<void>) | undefined;
}

/** A service that runs. It may not be ready yet, or not any more. */
export interface RunningService {
  readonly name: string;
  readonly http: HttpAddress;
  readiness(): Promise<ReadinessReport>;
  /** Resolves when it was ready for the first time. Rejects when it is stopped before that. */
  readonly becameReady: Promise<void>;
  /** Resolves with the reason when the service cannot go on; its owner then stops it. */
  readonly failed: Promise<unknown>;
  stop(options?: StopOptions): Promise<StopReport>;
}

export interface StopOptions {
  /** For draining and closing together, milliseconds. @default 8_000 */
  readonly graceMs?: number;
  /** Sends the spans that are still queued: called after the drain, which makes some, and before everything closes. */
  readonly flush?: () => Promise<void>;
}

/** Less than the time that a supervisor (10 s) or Kubernetes (30 s) gives. */
export const DEFAULT_GRACE_MS = 8_000;
/** The part of the grace time that is kept for flushing and closing. */
const MAX_CLOSE_RESERVE_MS = 2_500;
/** How often a service that was not ready yet is asked whether it is. */
const READY_POLL_MS = 25;

/**
 * Starts a service and returns when it is started, ready or not.
 * @throws what connecting, or the definition's `start` throws; nothing is left open (K2).
 */
export async function startService<Config extends BaseConfig>(
  definition: ServiceDefinition<Config>,
  options: StartServiceOptions<Config>,
): Promise<RunningService> {
  const { name } = definition;
  const { config } = options;
  const logger = (
    options.logger ?? createLogger({ service: name, level: config.logLevel, sink: process.stderr })
  ).child({
    instance: config.instanceId,
  });
  const stopping = new AbortController();
  const drainOver = new AbortController();
  const unprepared = new AbortController();
  const failed = Promise.withResolvers<unknown>();
  const starting = AbortSignal.any([
    drainOver.signal,
    unprepared.signal,
    ...(options.signal === undefined ? [] : [options.signal]),
  ]);

  let phase: Readiness = notReady("starting");
  let service: Service | undefined;
  const closers: Stage[] = [];
  const checks: ReadinessCheck[] = [{ name: "lifecycle", check: () => phase }];
  const readiness = () => reportReadiness(checks);

  if (config.readyFile !== undefined) await removeReadyFile(config.readyFile);
  const http = await startHttpServer({
    host: config.httpHost,
    port: config.httpPort,
    allowedHosts: config.httpAllowedHosts,
    health: healthRoutes({ service: name, instanceId: config.instanceId, readiness }),
  });
  closers.unshift({ name: "close HTTP", run: (signal) => closeHttp(http, signal) });

  const openDatabase = async (needs: DatabaseNeeds): Promise<Database> => {
    phase = notReady("starting: waiting for the database");
    const database = await openServiceDatabase(config, needs, logger, starting);
    closers.unshift({ name: `close the database (${needs.schema})`, run: () => database.close() });
    checks.push({
      name: `database ${needs.schema}`,
      check: async () => {
        const state = await database.ping();
        return state.isUp ? READY : notReady(state.reason);
      },
    });
    return database;
  };

  try {
    phase = notReady("starting: waiting for the bus");
    logger.debug("waiting for the bus", { http: http.address.url });
    const opening = openBus(config, name, starting);
    const prepared = options.prepare?.();
    prepared?.catch((error) => unprepared.abort(error));
    const bus = await opening;
    closers.unshift({ name: "close the bus", run: () => bus.close() });
    const busHealth = watchBus(bus);
    checks.push(busHealth);
    respondToHealth(
      bus,
      name,
      async () => {
        const { ready, reasons } = await readiness();
        return {
          instanceId: config.instanceId,
          isReady: ready,
          reasons: reasons.map(redactText),
        };
      },
      (error) => logger.debug("a question for this service's health is not answered", { error }),
    ); // it ends when the bus is closed
    void busHealth.lost.then((error) => failed.resolve(error));
    phase = notReady(`starting: waiting for the streams (${config.streams})`);
    await raceAbortable(makeStreams(config, bus, logger, starting), starting);
    if (config.streams === StreamsRole.make) {
      void keepDurables(bus, { signal: drainOver.signal, logger });
      void keepPayloads(bus, { signal: drainOver.signal, logger });
    }
    phase = notReady("starting");
    await prepared;
    service = await raceAbortable(
      definition.start({
        config,
        bus,
        logger,
        signal: drainOver.signal,
        http: http.address,
        openDatabase,
        fail: (error) => failed.resolve(error),
      }),
      starting,
    );
  } catch (error) {
    drainOver.abort(new StoppingError("its start failed"));
    await runStages(closers, { graceMs: MAX_CLOSE_RESERVE_MS, logger });
    throw unprepared.signal.aborted ? unprepared.signal.reason : error;
  }

  const running = service;
  if (running.routes !== undefined) http.serve(running.routes, running.hosts);
  checks.push({ name, check: () => running.readiness() });
  phase = READY;

  const becameReady = announceReadiness();
  becameReady.catch((error) => {
    if (!stopping.signal.aborted) failed.resolve(error);
  });

  async function announceReadiness(): Promise<void> {
    let told = "";
    while (true) {
      const { ready, reasons } = await readiness();
      if (ready) break;
      const text = reasons.join("; ");
      if (text !== told) logger.info("not ready yet", { reasons, http: http.address.url });
      told = text;
      await delay(READY_POLL_MS, { signal: stopping.signal });
    }
    stopping.signal.throwIfAborted();
    if (config.readyFile !== undefined) {
      await writeReadyFile(config.readyFile, {
        service: name,
        pid: process.pid,
        httpPort: http.address.port,
        instanceId: config.instanceId,
      });
    }
    logger.info("ready", { http: http.address.url });
  }

  async function stopAll(stopOptions: StopOptions): Promise<StopReport> {
    const { graceMs = DEFAULT_GRACE_MS, flush } = stopOptions;
    const reserveMs = Math.min(MAX_CLOSE_RESERVE_MS, graceMs / 2);
    phase = notReady("stopping");
    stopping.abort(new StoppingError("stop was asked for"));
    logger.info("stopping", { graceMs });
    const { readyFile } = config;
    const stages: Stage[] = [
      ...(readyFile === undefined
        ? []
        : [{ name: "remove the ready file", run: () => removeOwnReadyFile(readyFile, process.pid) }]),
      { name: "drain", run: (signal) => running.drain(signal), reserveMs },
      { name: "end leftovers", run: async () => drainOver.abort(new StoppingError("the drain is over")) },
      ...(flush === undefined ? [] : [{ name: "flush telemetry", run: flush, reserveMs: reserveMs / 2 }]),
      { name: "close the service", run: () => running.close(), reserveMs: reserveMs / 4 },
      ...closers,
    ];
    const report = await runStages(stages, { graceMs, logger });
    logger.info("stopped", { tookMs: Math.round(report.tookMs), problems: report.problems });
    return report;
  }

  let stopped: Promise<StopReport> | undefined;
  return {
    name,
    http: http.address,
    readiness,
    becameReady,
    failed: failed.promise,
    stop(stopOptions = {}) {
      stopped ??= stopAll(stopOptions); // K3
      return stopped;
    },
  };
}

async function openBus(config: BaseConfig, name: string, signal: AbortSignal): Promise<Bus> {
  return connectBus({
    url: await resolveAddress(config.nats, { signal }),
    name: `${name}/${config.instanceId}`,
    signal,
    streams: config.streams,
    user: payloadWriterOf(name),
    ...(config.inboxPrefix !== undefined && { inboxPrefix: config.inboxPrefix }),
  });
}

function makeStreams(config: BaseConfig, bus: Bus, logger: Logger, signal: AbortSignal): Promise<void> {
  const { streams: role, streamReplicas: replicas, episodesMaxBytes } = config;
  return ensureTopology(bus, {
    role,
    replicas,
    episodesMaxBytes,
    onOldSize: (episodes) =>
      logger.warn(
        "EPISODES is not of the size that HONE_EPISODES_MAX_BYTES gives it: a smaller size takes effect at a start at which it holds at most half of that, a larger one where the server has the room",
        { ...episodes, wantedMaxBytes: episodesMaxBytes },
      ),
    signal,
  });
}

/** The code for databases is loaded only by services that keep rows. */
async function openServiceDatabase(
  config: BaseConfig,
  needs: DatabaseNeeds,
  logger: Logger,
  signal: AbortSignal,
): Promise<Database> {
  if (config.database === undefined) {
    throw new SettingError(
      EnvironmentVariable.databaseUrl,
      "must be set for a service that keeps rows",
      "absent",
    );
  }
  // Both at once: the code loads while the database starts.
  const [{ openDatabase, migrate }, url] = await Promise.all([
    import("@hone/storage"),
    resolveAddress(config.database, { signal }),
  ]);
  const database = await openDatabase({
    url,
    schema: needs.schema,
    maxConnections: needs.maxConnections,
    statementTimeoutMs: needs.statementTimeoutMs,
    logger,
    signal,
  });
  try {
    const applied = await migrate(database, { migrations: needs.migrations, signal });
    if (applied.length > 0) logger.info("migrated", { schema: needs.schema, applied });
  } catch (error) {
    await database.close();
    throw error;
  }
  return database;
}

/** Time for requests that are being answered. A stream that never ends does not delay the stop beyond it. */
const HTTP_GRACE_MS = 500;

async function closeHttp(http: HttpServer, signal: AbortSignal): Promise<void> {
  await http.close(AbortSignal.any([signal, AbortSignal.timeout(HTTP_GRACE_MS)]));
}
