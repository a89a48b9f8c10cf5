import assert from "node:assert/strict";
import { createServer, type Server } from "node:net";
import { networkInterfaces } from "node:os";
import { after, before, describe, test } from "node:test";
import { ContainerHost, type HeldContainer } from "./container-host.ts";
import type { ContainerSpec } from "./container-spec.ts";

/*
 * A real container runtime, tried as code of a model would: HONE_TEST_CONTAINER_SOCKET names its socket, and
 * HONE_TEST_CONTAINER_IMAGE an image on it with the usual commands of a small Linux, such as alpine:3.
 */

const { HONE_TEST_CONTAINER_SOCKET: socketPath = "", HONE_TEST_CONTAINER_IMAGE: image = "" } = process.env;
const skip =
  socketPath !== "" && image !== ""
    ? false
    : "HONE_TEST_CONTAINER_SOCKET and HONE_TEST_CONTAINER_IMAGE must name a container runtime and an image on it: no real runtime is tested here";
const never = new AbortController().signal;
const SPEC: ContainerSpec = {
  image,
  memoryMib: 64,
  cpus: 1,
  maxProcesses: 32,
  workFolder: "/workspace",
  workMib: 8,
  copyFrom: undefined,
  user: "65534:65534",
  lifeMs: 600_000,
};

describe("containers of a real runtime", { skip, timeout: 600_000 }, () => {
  let host: ContainerHost;
  let held: HeldContainer;
  let server: Server;
  let numConnections = 0;
  before(async () => {
    host = new ContainerHost({
      socketPath,
      images: [image],
      owner: "containers.int.test",
      maxContainers: 4,
      maxMemoryMib: 64,
      maxCpus: 1,
    });
    await host.sweep();
    held = await host.open(SPEC, never);
    server = createServer(() => numConnections++);
    await new Promise<void>((resolve) => server.listen(0, "0.0.0.0", resolve));
  });
  after(async () => {
    server?.close();
    await held?.release();
  });

  async function run(script: string, timeMs = 60_000, on = held) {
    const command = ["/bin/sh", "-c", script];
    const end = await on.container.run({ command, timeMs, maxOutputBytes: 10_000, signal: never });
    const text = end.kind === "lost" ? end.reason : end.output.bytes.toString();
    return { end, text, exitCode: end.kind === "ended" ? end.exitCode : undefined };
  }

  test("a command writes files that the next one finds, and its output and exit code are told", async () => {
    await run("echo kept > note");
    const { text, exitCode } = await run("cat note; pwd; echo aside >&2; exit 7");
    assert.deepEqual([text, exitCode], ["kept\n/workspace\naside\n", 7]);
  });

  test("runs as no root, without capabilities, new privileges or a way to them", async () => {
    assert.match((await run("id -u")).text, /^65534\n$/);
    const { text } = await run("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status");
    for (const set of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]) {
      assert.match(text, new RegExp(`^${set}:\\s+0+$`, "m"));
    }
    assert.match(text, /^NoNewPrivs:\s+1$/m);
    assert.notEqual((await run("mount -t tmpfs none /workspace")).exitCode, 0);
  });

  test("writes nothing but its two folders", async () => {
    for (const folder of ["/", "/etc", "/usr", "/bin", "/proc/sys/kernel", "/sys"]) {
      assert.notEqual((await run(`echo x > ${folder}/hone-test`)).exitCode, 0, folder);
    }
    assert.equal((await run("echo x > /tmp/mine && echo x > /workspace/mine")).exitCode, 0);
    assert.notEqual(
      (await run("dd if=/dev/zero of=/workspace/large bs=1M count=20; rm -f /workspace/large")).text,
      "",
    );
    assert.match(
      (await run("dd if=/dev/zero of=/workspace/large bs=1M count=20; rm -f /workspace/large")).text,
      /No space left/,
    );
  });

  test("reaches no network, not even the machine that it runs on", async () => {
    const { port } = server.address() as { port: number };
    const own = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
    for (const { address } of own.filter(({ family }) => family === "IPv4")) {
      const { exitCode } = await run(`echo x | nc -w 2 ${address} ${port}`);
      assert.notEqual(exitCode, 0, address);
    }
    const { text } = await run("cat /proc/net/dev");
    assert.deepEqual(
      [...text.matchAll(/^\s*(\S+):/gm)].map(([, name]) => name).filter((name) => name !== "lo"),
      [],
    );
    assert.equal(numConnections, 0);
  });

  test("finds no socket of the runtime and no device of the machine", async () => {
    const { text } = await run(
      "ls /var/run/docker.sock /run/podman/podman.sock /dev/sda /dev/vda /dev/mem 2>/dev/null",
    );
    assert.equal(text, "");
  });

  test("cannot end its container, by no signal", async () => {
    await run("kill -9 1; kill -15 1; kill -9 -1; true");
    assert.equal((await run("echo still")).text, "still\n");
  });

  test("a command that takes too long is ended with what it left in the background; one that has ended is not waited for", async () => {
    const { text } = await run("sleep 500 & echo begun");
    assert.equal(text, "begun\n");
    const { end } = await run("echo here; sleep 500", 3_000);
    assert.ok(end.kind === "timed_out" && !end.isLost);
    assert.equal(end.output.bytes.toString(), "here\n");
    assert.doesNotMatch((await run("ps")).text, /sleep 500/);
  });

  test("output without end is cut, and blocks nothing but its own command", async () => {
    const { end } = await run("yes", 5_000);
    assert.equal(end.kind, "timed_out");
    assert.ok(end.kind === "timed_out" && end.output.droppedBytes > 0 && end.output.bytes.length <= 10_000);
    assert.equal((await run("echo next")).text, "next\n");
  });

  test("memory beyond the bound ends commands and not the machine's", async () => {
    const { exitCode, end } = await run("head -c 200000000 /dev/zero | tail -c 200000000 | wc -c");
    assert.ok(end.kind === "lost" || exitCode !== undefined);
    if (end.kind !== "lost") assert.doesNotMatch((await run("true")).text, /200000000/);
  });

  test("leaves no zombies of what its commands left behind", async () => {
    const own = await host.open(SPEC, never);
    for (let i = 0; i < 5; i++) await run("(sleep 0.1 &) ; (sleep 0.1 &)", 60_000, own);
    await run("sleep 1", 60_000, own);
    assert.doesNotMatch((await run("cat /proc/[0-9]*/stat", 60_000, own)).text, /\) Z /);
    await own.release();
  });

  test("a fork bomb stays within its container", async () => {
    const own = await host.open(SPEC, never);
    await run("f() { f | f & }; f", 5_000, own);
    // Whatever becomes of later commands in there, the runtime and other containers go on.
    await run("echo in there", 20_000, own).catch(() => undefined);
    assert.equal((await run("echo elsewhere")).text, "elsewhere\n");
    await own.release();
  });

  test("files of the image can be copied, and then belong to the user", async () => {
    const own = await host.open({ ...SPEC, copyFrom: "/etc", workFolder: "/workspace/here" }, never);
    const { text, exitCode } = await run("echo more >> passwd && tail -1 passwd && pwd", 60_000, own);
    assert.deepEqual([text, exitCode], ["more\n/workspace/here\n", 0]);
    await own.release();
    await assert.rejects(
      host.open({ ...SPEC, copyFrom: "/no/such/folder" }, never),
      /cannot be set up with the files/,
    );
  });

  test("what a killed process left is removed by the next one, and nothing else", async () => {
    const options = { socketPath, images: [image], maxContainers: 4, maxMemoryMib: 64, maxCpus: 1 };
    const killed = new ContainerHost({ ...options, owner: "containers.int.test killed" });
    await killed.open(SPEC, never);
    const next = new ContainerHost({ ...options, owner: "containers.int.test killed" });
    assert.equal(await next.sweep(), 1);
    assert.equal(await next.sweep(), 0);
    assert.equal((await run("echo still here")).text, "still here\n");
  });
});
