import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { StartError } from "../errors.ts";
import { type Child, spawnChild } from "./child-process.ts";
import { isRunning, sendSignal } from "./process-identity.ts";
import { type SupervisedEvent, supervise } from "./supervise.ts";

const folder = mkdtempSync(join(tmpdir(), "hone-supervise-"));
after(() => rmSync(folder, { recursive: true, force: true }));

function child(script: string): Promise<Child> {
  return spawnChild({
    name: "script",
    command: "/bin/sh",
    args: ["-c", script],
    logFile: join(folder, "script.log"),
  });
}

/** Resolves with the first event of a kind, and keeps all. */
function eventLog() {
  const events: SupervisedEvent[] = [];
  let wake: (() => void) | undefined;
  const until = async (isWanted: (event: SupervisedEvent) => boolean): Promise<SupervisedEvent> => {
    while (true) {
      const found = events.find(isWanted);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  const onEvent = (event: SupervisedEvent) => {
    events.push(event);
    wake?.();
  };
  return { events, until, onEvent };
}

describe("supervise()", () => {
  test("starts a killed child again", async () => {
    const log = eventLog();
    await using supervised = await supervise({
      name: "script",
      start: () => child("sleep 60"),
      onEvent: log.onEvent,
      minPauseMs: 1,
    });
    const first = supervised.current;
    assert.ok(first !== undefined);
    sendSignal(first.pid, "SIGKILL");
    const started = await log.until((event) => event.kind === "started" && event.restarts === 1);
    assert.notEqual(started.kind === "started" && started.pid, first.pid);
    assert.equal(supervised.restarts, 1);
  });

  test("throws what the first start throws", async () => {
    const start = () => Promise.reject(new StartError("script", "no", ""));
    await assert.rejects(supervise({ name: "script", start }), StartError);
  });

  test("tries again when a restart fails", async () => {
    const log = eventLog();
    let starts = 0;
    const start = () =>
      ++starts === 2 ? Promise.reject(new Error("port taken")) : child(starts === 1 ? "exit 1" : "sleep 60");
    await using _ = await supervise({ name: "script", start, onEvent: log.onEvent, minPauseMs: 1 });
    await log.until((event) => event.kind === "ended" && /port taken/.test(event.reason));
    await log.until((event) => event.kind === "started" && event.restarts === 1);
  });

  test("gives up after too many short lives, with the reason", async () => {
    const log = eventLog();
    const start = () => child("echo out of luck; exit 7");
    const supervised = await supervise({
      name: "script",
      start,
      onEvent: log.onEvent,
      minPauseMs: 1,
      maxShortLives: 2,
    });
    const error = await supervised.gaveUp;
    assert.match(error.message, /exit code 7[\s\S]*out of luck/);
    assert.equal(log.events.filter((event) => event.kind === "started").length, 2);
    await supervised.stop();
  });

  test("gives up at once when a restart cannot help", async () => {
    const supervised = await supervise({
      name: "script",
      start: () => child("exit 2"),
      isFatal: ({ code }) => code === 2,
    });
    assert.match((await supervised.gaveUp).message, /cannot mend/);
    assert.equal(supervised.restarts, 0);
  });

  test("stop() also stops a restart that has begun", async () => {
    const log = eventLog();
    let second: Child | undefined;
    const restarting = Promise.withResolvers<void>();
    let starts = 0;
    const start = async (signal: AbortSignal) => {
      if (++starts === 1) return child("exit 1");
      second = await child("sleep 60");
      restarting.resolve();
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      return second;
    };
    const supervised = await supervise({ name: "script", start, onEvent: log.onEvent, minPauseMs: 1 });
    await restarting.promise;
    await supervised.stop();
    assert.ok(second !== undefined && !isRunning(second.identity));
  });
});
