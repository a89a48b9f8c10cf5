import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { delay } from "@hone/core";
import { StartError } from "../errors.ts";
import { type Child, spawnChild, untilReady } from "./child-process.ts";
import { identifyProcess, isRunning, type ProcessIdentity } from "./process-identity.ts";

const folder = mkdtempSync(join(tmpdir(), "hone-child-"));
after(() => rmSync(folder, { recursive: true, force: true }));
let numLogs = 0;

function start(script: string, options: { stopSignals?: NodeJS.Signals[] } = {}): Promise<Child> {
  const logFile = join(folder, `${numLogs++}.log`);
  return spawnChild({ name: "script", command: "/bin/sh", args: ["-c", script], logFile, ...options });
}

async function untilLogged(child: Child, text: string): Promise<void> {
  while (!readFileSync(child.logFile, "utf8").includes(text)) await delay(5);
}

async function untilGone(identity: ProcessIdentity, withinMs: number): Promise<boolean> {
  const until = performance.now() + withinMs;
  while (isRunning(identity) && performance.now() < until) await delay(10);
  return !isRunning(identity);
}

describe("spawnChild()", () => {
  test("reports how the child ended", async () => {
    const child = await start("exit 3");
    assert.deepEqual(await child.exited, { code: 3, signal: null });
  });

  test("throws when the program does not exist", async () => {
    const options = {
      name: "ghost",
      command: "/nowhere/ghost",
      args: [],
      logFile: join(folder, "ghost.log"),
    };
    await assert.rejects(
      spawnChild(options),
      (error) => error instanceof StartError && /\/nowhere\/ghost/.test(error.message),
    );
  });

  test("stop() lets a child that handles its signal end by itself", async () => {
    const child = await start("trap 'echo drained; exit 0' TERM; echo up; while :; do sleep 0.02; done");
    await untilLogged(child, "up");
    assert.deepEqual(await child.stop(), { code: 0, signal: null });
    await untilLogged(child, "drained");
  });

  test("stop() kills a child that ignores its signal once the grace time is over, and is idempotent", async () => {
    const child = await start("trap '' TERM; echo up; while :; do sleep 0.02; done");
    await untilLogged(child, "up");
    const [first, second] = await Promise.all([child.stop({ graceMs: 50 }), child.stop({ graceMs: 50 })]);
    assert.equal(first.signal, "SIGKILL");
    assert.equal(second, first);
  });

  test("stop() called again with less grace time ends the child sooner", async () => {
    const child = await start("trap '' TERM; echo up; while :; do sleep 0.02; done");
    await untilLogged(child, "up");
    const patient = child.stop({ graceMs: 600_000 });
    assert.equal((await child.stop({ graceMs: 1 })).signal, "SIGKILL");
    await patient;
  });

  test("kills the children of a child that has ended", async () => {
    const child = await start("sleep 60 & echo pid $!; wait");
    await untilLogged(child, "pid ");
    const pid = Number(/pid (\d+)/.exec(readFileSync(child.logFile, "utf8"))?.[1]);
    const grandchild = identifyProcess(pid);
    assert.ok(grandchild !== undefined);
    await child.stop();
    assert.ok(await untilGone(grandchild, 2_000));
  });
});

describe("untilReady()", () => {
  test("returns what the check returns", async () => {
    await using child = await start("sleep 60");
    let looks = 0;
    assert.equal(
      await untilReady(child, async () => (++looks < 3 ? undefined : "ready"), { deadlineMs: 5_000 }),
      "ready",
    );
  });

  test("rejects with the end of the log when the child exits first", async () => {
    const child = await start("echo the reason; exit 1");
    await assert.rejects(
      untilReady(child, async () => undefined, { deadlineMs: 5_000 }),
      (error) =>
        error instanceof StartError && /exit code 1/.test(error.message) && /the reason/.test(error.logTail),
    );
  });

  test("ends the child when the deadline passes, and keeps the last failure as cause", async () => {
    const child = await start("sleep 60");
    const failing = () => Promise.reject(new Error("connection refused"));
    await assert.rejects(
      untilReady(child, failing, { deadlineMs: 60 }),
      (error) =>
        error instanceof StartError && error.cause instanceof Error && /refused/.test(error.cause.message),
    );
    assert.equal(isRunning(child.identity), false);
  });

  test("ends the child when the signal aborts", async () => {
    const child = await start("sleep 60");
    const reason = new Error("never mind");
    const aborted = AbortSignal.abort(reason);
    await assert.rejects(
      untilReady(child, async () => undefined, { deadlineMs: 5_000, signal: aborted }),
      reason,
    );
    assert.equal(isRunning(child.identity), false);
  });
});

describe("the watchdog", () => {
  test("ends a child that ignores SIGTERM after its parent was killed", async () => {
    const file = join(folder, "parent.ts");
    const source = `import { spawnChild } from ${JSON.stringify(join(import.meta.dirname, "child-process.ts"))};
      const child = await spawnChild({ name: "orphan", command: "/bin/sh", args: ["-c", "trap '' TERM; while :; do sleep 0.02; done"],
        logFile: ${JSON.stringify(join(folder, "orphan.log"))}, graceMs: 100 });
      console.log(child.pid);
      setInterval(() => undefined, 1_000);`;
    writeFileSync(file, source);
    const parent = spawn(process.execPath, [file], { stdio: ["ignore", "pipe", "inherit"] });
    const line = await new Promise<string>((resolve) =>
      parent.stdout.once("data", (data) => resolve(String(data))),
    );
    const orphan = identifyProcess(Number(line));
    assert.ok(orphan !== undefined);
    parent.kill("SIGKILL");
    assert.ok(await untilGone(orphan, 10_000));
  });
});

describe("identifyProcess()", () => {
  test("distinguishes a process from a later one with the same pid", () => {
    const own = identifyProcess(process.pid);
    assert.ok(own !== undefined && isRunning(own));
    assert.equal(isRunning({ ...own, startedAt: "another start" }), false);
  });

  test("returns undefined for a pid without a process", () => {
    assert.equal(identifyProcess(0), undefined);
    assert.equal(identifyProcess(2 ** 30), undefined);
  });
});
