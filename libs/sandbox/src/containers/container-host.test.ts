import assert from "node:assert/strict";
import { createServer } from "node:http";
import path from "node:path";
import { describe, test } from "node:test";
import { temporaryFolder } from "@hone/testing";
import { ContainerRefusedError, ContainerRuntimeError } from "../errors.ts";
import { FakeEngine } from "../testing/fake-engine.ts";
import type { CommandEnd } from "./container.ts";
import { ContainerHost, type ContainerHostOptions } from "./container-host.ts";
import type { ContainerSpec } from "./container-spec.ts";

/* The runtime is a fake that speaks Docker's API and runs commands as child processes; containers.int.test.ts tries a real one. */

const never = new AbortController().signal;
const SPEC: ContainerSpec = {
  image: "test/image:1",
  memoryMib: 128,
  cpus: 1,
  maxProcesses: 64,
  workFolder: "/workspace",
  workMib: 16,
  copyFrom: undefined,
  user: "65534:65534",
  lifeMs: 600_000,
};

function hostOf({ socketPath }: { socketPath: string }, options: Partial<ContainerHostOptions> = {}) {
  return new ContainerHost({
    socketPath,
    images: ["test/*"],
    owner: "mine",
    maxContainers: 4,
    maxMemoryMib: 256,
    maxCpus: 2,
    ...options,
  });
}

const textOf = (end: CommandEnd) => (end.kind === "lost" ? end.reason : end.output.bytes.toString());

describe("ContainerHost", { timeout: 60_000 }, () => {
  test("creates containers without network, capabilities, privileges or a writable root, with bounds", async () => {
    await using engine = await FakeEngine.start();
    const held = await hostOf(engine).open(SPEC, never);
    const [{ body } = assert.fail()] = engine.containers.values();
    assert.equal(body.Image, engine.images.get(SPEC.image));
    assert.equal(held.image, `${SPEC.image} ${body.Image}`);
    assert.equal(body.User, "65533:65533", "no command can signal the first process");
    assert.equal(body.NetworkDisabled, true);
    const { Tmpfs: folders, ...limits } = body.HostConfig;
    assert.deepEqual(limits, {
      NetworkMode: "none",
      IpcMode: "private",
      Privileged: false,
      ReadonlyRootfs: true,
      CapDrop: ["ALL"],
      SecurityOpt: ["no-new-privileges"],
      Memory: 128 * 1024 * 1024,
      MemorySwap: 128 * 1024 * 1024,
      NanoCpus: 1_000_000_000,
      PidsLimit: 64,
      LogConfig: { Type: "none" },
      RestartPolicy: { Name: "no" },
    });
    assert.deepEqual(Object.keys(folders as object), ["/workspace", "/tmp"]);
    await held.release();
    assert.equal(engine.containers.size, 0);
  });

  test("runs commands as the user, one after the other in the same folder, and Hone's own as root", async () => {
    await using engine = await FakeEngine.start();
    const held = await hostOf(engine).open(SPEC, never);
    const run = (script: string, timeMs = 10_000) =>
      held.container.run({
        command: ["/bin/sh", "-c", script],
        timeMs,
        maxOutputBytes: 1_000,
        signal: never,
      });
    await run("echo kept > note");
    const end = await run("cat note; echo aside >&2; exit 3");
    assert.ok(end.kind === "ended" && end.exitCode === 3);
    assert.equal(textOf(end), "kept\naside\n");
    assert.deepEqual(
      engine.started.map(({ user }) => user),
      ["0:0", "65534:65534", "65534:65534"],
    );
    await held.release();
  });

  test("a command ends with its own process, whatever it leaves in the background", async () => {
    await using engine = await FakeEngine.start();
    const held = await hostOf(engine).open(SPEC, never);
    const command = ["/bin/sh", "-c", "sleep 30 & echo started"];
    const end = await held.container.run({ command, timeMs: 20_000, maxOutputBytes: 100, signal: never });
    assert.ok(end.kind === "ended");
    assert.equal(textOf(end), "started\n");
    await held.release();
  });

  test("a command that takes too long is ended, and what it wrote until then is kept", async () => {
    await using engine = await FakeEngine.start();
    const held = await hostOf(engine).open(SPEC, never);
    const run = (script: string, timeMs: number) =>
      held.container.run({ command: ["/bin/sh", "-c", script], timeMs, maxOutputBytes: 100, signal: never });
    const end = await run("echo begun; sleep 60", 700);
    assert.deepEqual([end.kind, end.kind === "timed_out" && end.isLost], ["timed_out", false]);
    assert.equal(textOf(end), "begun\n");
    assert.equal(textOf(await run("echo next", 10_000)), "next\n");
    await held.release();
  });

  test("what a command did to its container is its result; any other end is a failure of the runtime", async () => {
    await using engine = await FakeEngine.start();
    const host = hostOf(engine);
    const run = (held: Awaited<ReturnType<typeof host.open>>) =>
      held.container.run({ command: ["true"], timeMs: 5_000, maxOutputBytes: 100, signal: never });
    const full = await host.open(SPEC, never);
    const [container = assert.fail()] = engine.containers.values();
    engine.interfere = (_, at) => (at.endsWith("/exec") ? 500 : undefined);
    const jammed = await run(full);
    assert.ok(jammed.kind === "lost");
    assert.match(jammed.reason, /no command could be started in it any more: as the test wants it/);
    engine.interfere = () => undefined;
    engine.end(container, true);
    assert.deepEqual(await run(full), { kind: "lost", reason: "it used more memory than it may" });
    engine.end(container, false);
    await assert.rejects(run(full), ContainerRuntimeError);
    engine.containers.delete(container.id);
    await assert.rejects(run(full), /is gone that nobody here removed/);
    await full.release();
  });

  test("a runtime that fails or cannot be reached is a failure that may pass, and leaves no place taken", async () => {
    await using engine = await FakeEngine.start();
    const host = hostOf(engine, { maxContainers: 1 });
    for (const [part, told] of [
      ["/create", /status 500, as the test wants it/],
      ["/start", /status 500/],
      ["/json", /status 500/],
    ] as const) {
      engine.interfere = (_, at) => (at.endsWith(part) ? 500 : undefined);
      await assert.rejects(host.open(SPEC, never), (error) => {
        assert.ok(error instanceof ContainerRuntimeError, String(error));
        assert.match(error.message, told);
        return true;
      });
      assert.equal(engine.containers.size, 0, "a container was left");
    }
    engine.interfere = () => undefined;
    await (await host.open(SPEC, never)).release();
    const gone = hostOf({ socketPath: `${engine.socketPath}.gone` });
    await assert.rejects(gone.open(SPEC, never), ContainerRuntimeError);
    await assert.rejects(host.open({ ...SPEC, image: "test/absent" }, never), /the operator has to pull it/);
  });

  test("a wait ends when its signal aborts, and a container that is made meanwhile is removed", async () => {
    await using engine = await FakeEngine.start();
    engine.interfere = (method, at) => (method === "POST" && at.endsWith("/start") ? "hang" : undefined);
    const over = new AbortController();
    const opening = hostOf(engine).open(SPEC, over.signal);
    setTimeout(() => over.abort(new Error("over")), 300);
    await assert.rejects(opening, /over/);
    assert.equal(engine.containers.size, 0);
  });

  test("an answer that never ends is not read to its end", async () => {
    await using folder = await temporaryFolder("endless");
    const socketPath = path.join(folder.path, "sock");
    const server = createServer((_, response) => {
      const write = () => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536, " ")));
        if (!response.destroyed) response.once("drain", write);
      };
      write();
    });
    await new Promise<void>((resolve) => server.listen(socketPath, resolve));
    await assert.rejects(hostOf({ socketPath }).sweep(), /more than 16777216 bytes/);
    server.closeAllConnections();
    server.close();
  });

  test("refuses images that the operator does not list, and more than it allows", async () => {
    await using engine = await FakeEngine.start();
    const host = hostOf(engine, { images: ["test/image:1", "swe/*"] });
    for (const change of [
      { image: "test/image:2" },
      { image: "test/image:10" },
      { image: "other/swe/a" },
      { image: "" },
      { memoryMib: 257 },
      { cpus: 2.5 },
    ]) {
      const [key] = Object.keys(change);
      await assert.rejects(host.open({ ...SPEC, ...change }, never), (error) => {
        assert.ok(error instanceof ContainerRefusedError);
        assert.equal(error.key, key);
        return true;
      });
    }
    host.check({ ...SPEC, image: "swe/astropy:1" });
    assert.throws(() => hostOf(engine, { images: [] }).check(SPEC), ContainerRefusedError);
  });

  test("has no more containers than its places, and gives a place to who waits longest", async () => {
    await using engine = await FakeEngine.start();
    const host = hostOf(engine, { maxContainers: 1 });
    const first = await host.open(SPEC, never);
    let numOpen = 1;
    const second = host.open(SPEC, never).then((held) => {
      numOpen++;
      return held;
    });
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.deepEqual([numOpen, engine.containers.size], [1, 1]);
    await first.release();
    await first.release();
    await (await second).release();
    assert.equal(engine.containers.size, 0);
  });

  test("at its start removes what its own earlier processes left and what is over, and nothing of others", async () => {
    await using engine = await FakeEngine.start();
    const others = await hostOf(engine, { owner: "theirs" }).open(SPEC, never);
    const earlier = hostOf(engine);
    await earlier.open(SPEC, never);
    await earlier.open(SPEC, never);
    await hostOf(engine, { owner: "gone for ever" }).open({ ...SPEC, lifeMs: -1 }, never);
    const host = hostOf(engine);
    const own = await host.open(SPEC, never);
    engine.containers.set("foreign", {
      id: "foreign",
      body: { ...[...engine.containers.values()][0]!.body, Labels: { app: "of somebody" } },
      folder: "",
      state: "running",
      isOutOfMemory: false,
      children: new Set(),
    });
    assert.equal(engine.containers.size, 6);
    assert.equal(await host.sweep(), 3);
    assert.deepEqual(
      [...engine.containers.values()].map(({ body: { Labels } }) => Labels["dev.hone.owner"]).sort(),
      ["mine", "theirs", undefined],
    );
    assert.equal(await host.sweep(), 0);
    await own.release();
    await others.release();
    assert.deepEqual([...engine.containers.keys()], ["foreign"]);
  });
});
