/** Starts a real bus and database for a tracer, and puts the sample run's tokenizer where a trainer would put it. */

import { cp, mkdir } from "node:fs/promises";
import path from "node:path";
import { type Bus, respondToHealth, ServiceName, StreamName } from "@hone/messaging";
import { startBus } from "@hone/messaging/testing";
import { type RunningService, startService } from "@hone/service-kit";
import { silentLogger } from "@hone/telemetry";
import { eventually, startPostgres, temporaryFolder } from "@hone/testing";
import { loadTokenizer } from "@hone/tokenizer";
import { readTracerConfig } from "../config.ts";
import { tracerService } from "../service.ts";
import type { SampleRun } from "./sample-run.ts";

const EXAMPLE = path.join(import.meta.dirname, "../../../../examples/01-frozen-lake");

export interface TracerStack extends AsyncDisposable {
  readonly bus: Bus;
  readonly run: SampleRun;
  /** Stops the database; startDatabase() starts it again with its data and on the same port. */
  stopDatabase(): Promise<unknown>;
  startDatabase(): Promise<void>;
  /** The variables of a tracer, for one in a process of its own. */
  readonly environment: Readonly<Record<string, string>>;
  /** Starts a tracer; the caller stops it. */
  startTracer(environment?: Readonly<Record<string, string>>): Promise<RunningService>;
  /** Waits until everything that was published is stored. */
  stored(): Promise<unknown>;
}

export async function startStack(startedAtMs: number): Promise<TracerStack> {
  const [bus, folder] = await Promise.all([startBus(), temporaryFolder("tracer")]);
  const databaseFolder = path.join(folder.path, "database");
  let postgres = await startPostgres({ folder: databaseFolder });
  const { url: databaseUrl } = postgres;
  // The other services answer requests for their health, so that runs are shown as their trainer published them.
  for (const service of Object.values(ServiceName).filter((name) => name !== ServiceName.tracer)) {
    respondToHealth(
      bus,
      service,
      async () => ({ instanceId: `${service}-0`, isReady: true, reasons: [] }),
      (error) => {
        throw error;
      },
    );
  }
  const run: SampleRun = {
    runId: "frozen-lake-1",
    steps: 40,
    stepsWithRollouts: 2,
    tokenizer: await loadTokenizer(EXAMPLE),
    startedAtMs,
  };
  const tokenizerFolder = path.join(folder.path, "runs", run.runId, "tokenizer");
  await mkdir(tokenizerFolder, { recursive: true });
  await cp(EXAMPLE, tokenizerFolder, { recursive: true });
  const unacknowledged = async (stream: StreamName, durable: string) => {
    const { num_pending, num_ack_pending } = await bus.manager.consumers.info(stream, durable);
    return num_pending + num_ack_pending;
  };
  const own = {
    HONE_NATS_URL: bus.server.url,
    HONE_DATABASE_URL: databaseUrl,
    HONE_STATE_DIR: folder.path,
  };
  return {
    bus,
    run,
    environment: own,
    stopDatabase: () => postgres.stop(),
    async startDatabase() {
      postgres = await startPostgres({ folder: databaseFolder, port: Number(new URL(databaseUrl).port) });
    },
    startTracer: (environment = {}) =>
      startService(tracerService, {
        config: readTracerConfig({ ...own, ...environment }),
        logger: silentLogger(),
      }),
    stored: () =>
      eventually("the tracer to store all messages", async () => {
        const events = await unacknowledged(StreamName.events, "tracer-events");
        return events + (await unacknowledged(StreamName.episodes, "tracer-rollouts")) === 0;
      }),
    async [Symbol.asyncDispose]() {
      await Promise.all([bus.close(), postgres.stop()]);
      await folder[Symbol.asyncDispose]();
    },
  };
}
