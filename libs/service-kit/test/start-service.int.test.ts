import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { InvalidInputError } from "@hone/core";
import { query } from "@hone/storage";
import { silentLogger } from "@hone/telemetry";
import { eventually, startNats, startPostgres, temporaryFolder } from "@hone/testing";
import {
  type BaseConfig,
  READY,
  type RunningService,
  readBaseConfig,
  type Service,
  type ServiceContext,
  type ServiceDefinition,
  SettingError,
  startService,
} from "../src/index.ts";

describe("startService()", () => {
  let nats: Awaited<ReturnType<typeof startNats>>;
  before(async () => {
    nats = await startNats();
  });
  after(() => nats?.stop());

  function start(
    build: (context: ServiceContext) => Promise<Partial<Service>>,
    environment: Record<string, string> = {},
    signal?: AbortSignal,
  ): Promise<RunningService> {
    const definition: ServiceDefinition<BaseConfig> = {
      name: "part",
      readConfig: readBaseConfig,
      start: async (context) => ({
        readiness: () => READY,
        drain: async () => undefined,
        close: async () => undefined,
        ...(await build(context)),
      }),
    };
    const config = readBaseConfig({ HONE_NATS_URL: nats.url, ...environment });
    return startService(definition, { config, logger: silentLogger(), signal });
  }

  test("stops in order: not ready, drain, telemetry, close, bus, HTTP; and only once", async () => {
    const events: string[] = [];
    const { promise: draining, resolve: drainBegan } = Promise.withResolvers<void>();
    const { promise: mayEnd, resolve: endDrain } = Promise.withResolvers<void>();
    const service = await start(async ({ bus, signal }) => ({
      async drain() {
        events.push("drain");
        drainBegan();
        await mayEnd;
        assert.equal(signal.aborted, false);
      },
      async close() {
        assert.equal(signal.aborted, true);
        assert.equal(bus.connection.isClosed(), false);
        events.push("close");
      },
    }));
    await service.becameReady;
    assert.deepEqual(await service.readiness(), { ready: true, reasons: [] });
    const stopped = service.stop({
      flush: async () => {
        events.push("flush");
      },
    });
    await draining;
    const response = await fetch(`${service.http.url}/readyz`);
    assert.equal(response.status, 503);
    assert.deepEqual(((await response.json()) as { reasons: string[] }).reasons, ["lifecycle: stopping"]);
    endDrain();
    const [report, again] = await Promise.all([stopped, service.stop()]);
    assert.equal(report, again);
    assert.equal(report.isClean, true, report.problems.join());
    assert.deepEqual(events, ["drain", "flush", "close"]);
    await assert.rejects(fetch(`${service.http.url}/livez`));
  });

  test("closes what it opened when the service's start fails", async () => {
    let url = "";
    let bus: ServiceContext["bus"] | undefined;
    await assert.rejects(
      start(async (context) => {
        url = context.http.url;
        bus = context.bus;
        throw new InvalidInputError("Cannot start", { path: "x", allowed: "y" });
      }),
      InvalidInputError,
    );
    await assert.rejects(fetch(`${url}/livez`));
    assert.equal(bus?.connection.isClosed(), true);
  });

  test("gives up a start that hangs when the signal aborts", async () => {
    const controller = new AbortController();
    const reason = new Error("not needed any more");
    await assert.rejects(
      start(
        async () => {
          controller.abort(reason);
          return new Promise(() => undefined);
        },
        {},
        controller.signal,
      ),
      (error) => error === reason,
    );
  });

  test("refuses to open a database where HONE_DATABASE_URL is absent", async () => {
    await assert.rejects(
      start(async ({ openDatabase }) => {
        await openDatabase({ schema: "part", migrations: [] });
        return {};
      }),
      (error) => error instanceof SettingError && error.variable === "HONE_DATABASE_URL",
    );
  });

  test("is not ready while the bus or the database is away, says so, and is ready again when they are back", async () => {
    // The passwords lie beside what the server keeps, so that it comes back with them.
    await using folder = await temporaryFolder("bus");
    await using ownNats = await startNats({ folder: folder.path });
    const port = Number(new URL(ownNats.url).port);
    await using database = await startPostgres();
    const service = await start(
      async ({ openDatabase }) => {
        const rows = await openDatabase({
          schema: "part",
          migrations: [{ id: 1, name: "create-things", sql: "create table things (id integer)" }],
        });
        const found = await query(rows, (db) => db.execute("select * from things"));
        assert.equal(found.length, 0);
        return {};
      },
      { HONE_NATS_URL: ownNats.url, HONE_DATABASE_URL: database.url },
    );
    await service.becameReady;

    await ownNats.stop();
    await eventually("the lost bus to show", async () =>
      (await service.readiness()).reasons.includes("bus: disconnected"),
    );
    await using _again = await startNats({ folder: folder.path, port });
    await eventually("the bus to be back", async () => (await service.readiness()).ready);

    await database.stop();
    await eventually("the lost database to show", async () =>
      (await service.readiness()).reasons.some((reason) => reason.startsWith("database part: ")),
    );
    const report = await service.stop({ graceMs: 4_000 });
    assert.equal(report.isClean, true, report.problems.join());
  });
});
