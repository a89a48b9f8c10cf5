import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { eventually, startNats, temporaryFolder } from "@hone/testing";

const MAIN = join(import.meta.dirname, "example-service.ts");

describe("runService()", () => {
  let nats: Awaited<ReturnType<typeof startNats>>;
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let numStarted = 0;

  before(async () => {
    nats = await startNats();
    folder = await temporaryFolder("service-kit");
  });
  after(async () => {
    await nats?.stop();
    await folder?.[Symbol.asyncDispose]();
  });

  function start(settings: Record<string, string> = {}): Running {
    const readyFile = join(folder.path, `ready-${++numStarted}.json`);
    const child = spawn(process.execPath, [MAIN], {
      env: {
        PATH: process.env.PATH,
        HONE_NATS_URL: nats.url,
        HONE_READY_FILE: readyFile,
        HONE_INSTANCE_ID: "one",
        ...settings,
      },
      stdio: ["ignore", "ignore", "pipe"],
    });
    let log = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      log += text;
    });
    return { child, readyFile, log: () => log };
  }

  test("writes its port and process id once it is ready, and serves its routes", async () => {
    const running = start();
    await writeFile(running.readyFile, '{"service":"example","pid":1,"httpPort":9}');
    const ready = await untilReady(running);
    assert.deepEqual(ready, {
      service: "example",
      pid: running.child.pid,
      httpPort: ready.httpPort,
      instanceId: "one",
    });
    const base = `http://127.0.0.1:${ready.httpPort}`;
    assert.equal(await (await fetch(`${base}/hello`)).text(), "hello");
    assert.deepEqual(await (await fetch(`${base}/readyz`)).json(), {
      service: "example",
      instanceId: "one",
      ready: true,
      reasons: [],
    });
    const broken = await fetch(`${base}/broken`);
    assert.equal(broken.status, 500);
    assert.doesNotMatch(await broken.text(), /on purpose/);
    assert.equal((await fetch(`${base}/nowhere`)).status, 404);
    assert.deepEqual(await stop(running, "SIGTERM"), { code: 0, signal: null });
    assert.match(running.log(), /draining[\s\S]*closing[\s\S]*"stopped"/);
    await assert.rejects(readFile(running.readyFile), { code: "ENOENT" });
  });

  test("drains once when Ctrl-C and the supervisor both ask", async () => {
    const running = start();
    await untilReady(running);
    running.child.kill("SIGINT");
    assert.deepEqual(await stop(running, "SIGTERM"), { code: 0, signal: null });
    assert.equal(running.log().match(/"draining"/g)?.length, 1);
    assert.equal(running.log().match(/"closing"/g)?.length, 1);
  });

  test("ends with code 1 and the reason when the drain takes longer than the grace time, and closes all the same", async () => {
    const running = start({ EXAMPLE_BEHAVIOUR: "drain hangs", EXAMPLE_GRACE_MS: "300" });
    await untilReady(running);
    assert.deepEqual(await stop(running, "SIGTERM"), { code: 1, signal: null });
    assert.match(running.log(), /drain took longer than 1[0-5]\d ms/);
    assert.match(running.log(), /"closing"/);
  });

  test("ends with code 0 when the stop ends work that nobody waits for", async () => {
    const running = start({ EXAMPLE_BEHAVIOUR: "leaves work behind" });
    await untilReady(running);
    assert.deepEqual(await stop(running, "SIGTERM"), { code: 0, signal: null });
  });

  test("/readyz says why it is not ready, and no ready file is written until it is", async () => {
    const running = start({ EXAMPLE_BEHAVIOUR: "never ready" });
    const port = await eventually("the HTTP port", () => listeningPort(running));
    const response = await fetch(`http://127.0.0.1:${port}/readyz`);
    assert.equal(response.status, 503);
    assert.deepEqual(await response.json(), {
      service: "example",
      instanceId: "one",
      ready: false,
      reasons: ["example: it was told to be so"],
    });
    assert.equal((await fetch(`http://127.0.0.1:${port}/livez`)).status, 200);
    await assert.rejects(readFile(running.readyFile), { code: "ENOENT" });
    assert.deepEqual(await stop(running, "SIGTERM"), { code: 0, signal: null });
  });

  test("drains and exits with code 1 when the service reports that it cannot continue", async () => {
    const running = start({ EXAMPLE_BEHAVIOUR: "fails" });
    const { httpPort } = await untilReady(running);
    await fetch(`http://127.0.0.1:${httpPort}/do`);
    assert.deepEqual(await exitOf(running), { code: 1, signal: null });
    assert.match(running.log(), /cannot go on[\s\S]*draining[\s\S]*closing/);
  });

  test("logs an uncaught error and ends at once with code 1", async () => {
    const running = start({ EXAMPLE_BEHAVIOUR: "throws" });
    const { httpPort } = await untilReady(running);
    await fetch(`http://127.0.0.1:${httpPort}/do`).catch(() => undefined);
    assert.deepEqual(await exitOf(running), { code: 1, signal: null });
    assert.match(running.log(), /nobody catches this/);
    assert.doesNotMatch(running.log(), /draining/);
  });

  test("ends with code 2 and every wrong variable when its settings are wrong", async () => {
    const running = start({ HONE_HTTP_PORT: "many", HONE_TRACE_SAMPLE_RATIO: "2" });
    assert.deepEqual(await exitOf(running), { code: 2, signal: null });
    assert.match(running.log(), /HONE_HTTP_PORT[\s\S]*HONE_TRACE_SAMPLE_RATIO/);
  });

  test("ends with code 0 when it is asked to stop while it still waits for the bus", async () => {
    const running = start({ HONE_NATS_URL: "nats://user:hidden@127.0.0.1:1", HONE_LOG_LEVEL: "debug" });
    await eventually("its process to listen for signals", () =>
      running.log().includes("waiting for the bus"),
    );
    assert.deepEqual(await stop(running, "SIGTERM"), { code: 0, signal: null });
    assert.doesNotMatch(running.log(), /hidden/);
  });
});

interface Running {
  readonly child: ChildProcess;
  readonly readyFile: string;
  log(): string;
}

interface ReadyFile {
  readonly service: string;
  readonly pid: number;
  readonly httpPort: number;
  readonly instanceId: string;
}

function untilReady(running: Running): Promise<ReadyFile> {
  return eventually(`the ready file; the log says ${running.log()}`, async () => {
    assert.equal(running.child.exitCode, null, running.log());
    const content: ReadyFile = JSON.parse(await readFile(running.readyFile, "utf8"));
    return content.pid === running.child.pid ? content : undefined;
  });
}

function listeningPort(running: Running): number | undefined {
  const match = /"not ready yet".*?"http":"http:\/\/127\.0\.0\.1:(\d+)"/.exec(running.log());
  return match === null ? undefined : Number(match[1]);
}

async function stop(running: Running, signal: NodeJS.Signals) {
  running.child.kill(signal);
  return exitOf(running);
}

async function exitOf(running: Running) {
  if (running.child.exitCode === null && running.child.signalCode === null) await once(running.child, "exit");
  return { code: running.child.exitCode, signal: running.child.signalCode };
}
