/**
 * What is around a trainer, for tests: a bus and a database on servers of their own, the other services played by fakes, and
 * what the bus tells of runs.
 */

import { publishBytes, subjects, type ValidatingService } from "@hone/messaging";
import { startBus, type TestBus } from "@hone/messaging/testing";
import type { RunEvent_Ended as RunEnded } from "@hone/proto-gen/run";
import { eventually, startPostgres, temporaryFolder } from "@hone/testing";
import postgres from "postgres";
import { type FakePeers, startFakePeers } from "./fake-peers.ts";
import { followEvents, type TrainerServers } from "./trainer-process.ts";

const RUN_DEADLINE_MS = 60_000;

export interface TrainerWorld extends AsyncDisposable {
  readonly bus: TestBus;
  readonly sql: postgres.Sql;
  readonly peers: FakePeers;
  readonly events: ReturnType<typeof followEvents>;
  /** What a trainer is started with. */
  readonly servers: TrainerServers;
  /** Requests a run. @returns its id. */
  submit(runFile: string): Promise<string>;
  /** Waits for the end of a run. @param deadlineMs 60_000 by default. */
  endOf(runId: string, deadlineMs?: number): Promise<RunEnded>;
}

export interface TrainerWorldOptions {
  /** Where trainers keep their state. @default a temporary folder */
  readonly stateDir?: string;
  /** Services that do not answer `validate`. */
  readonly silent?: readonly ValidatingService[];
}

/** Starts everything but the trainer. Disposing ends it again; the trainer must have stopped by then. */
export async function startTrainerWorld({
  stateDir,
  silent,
}: TrainerWorldOptions = {}): Promise<TrainerWorld> {
  const [bus, database, folder] = await Promise.all([
    startBus(),
    startPostgres(),
    stateDir === undefined ? temporaryFolder("trainer") : undefined,
  ]);
  const ended = new AbortController();
  const events = followEvents(bus, ended.signal);
  const peers = startFakePeers(bus, silent);
  const sql = postgres(database.url, { onnotice: () => undefined });
  return {
    bus,
    sql,
    peers,
    events,
    servers: { nats: bus.server.url, postgres: database.url, stateDir: stateDir ?? folder!.path },
    async submit(runFile) {
      const { name } = JSON.parse(runFile) as { name: string };
      return `${name}-${(await publishBytes(bus, subjects.runRequest(), runFile, undefined)).sequence}`;
    },
    endOf: (runId, deadlineMs = RUN_DEADLINE_MS) =>
      eventually(`the end of ${runId}`, () => events.of("ended", runId)[0], { deadlineMs }),
    async [Symbol.asyncDispose]() {
      ended.abort();
      await peers.stop();
      await sql.end();
      await Promise.all([bus.close(), database.stop()]);
      await folder?.[Symbol.asyncDispose]();
    },
  };
}
