import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ChildChannel } from "../child-channel.ts";
import { spawnDeno } from "../deno-process.ts";
import type { Frame } from "../frame-reader.ts";

/** The program of a child that can write anything: `write(bytes)`, `frame(nonce, kind, payload)`. It knows the run's nonce. */
const CHILD = `
  const write = (bytes) => { for (let at = 0; at < bytes.length; ) at += Deno.stdout.writeSync(bytes.subarray(at)); };
  const frame = (nonce, kind, payload, length = payload.length + 17) => {
    const head = new Uint8Array(21);
    new DataView(head.buffer).setUint32(0, length, true);
    head.set(nonce, 4); head[20] = kind;
    write(head); write(payload);
  };
  const nonce = new Uint8Array(16);
  for (let at = 0; at < 16; ) at += Deno.stdin.readSync(nonce.subarray(at)) ?? Deno.exit(0);
  const empty = new Uint8Array(0);
  const wrong = crypto.getRandomValues(new Uint8Array(16));
  ATTACK;
  await new Promise((resolve) => setTimeout(resolve, 3_000));`;

const LIES: Readonly<Record<string, readonly [attack: string, told: RegExp]>> = {
  "a frame with a guessed nonce": ["frame(wrong, 3, empty)", /not of this run/],
  "a frame with a nonce of zeros": ["frame(new Uint8Array(16), 3, empty)", /not of this run/],
  "a frame of four gigabytes": ["frame(nonce, 3, empty, 0xffffffff)", /4294967295 bytes/],
  "a frame that is a byte too long": ["frame(nonce, 3, new Uint8Array(1001))", /1018 bytes/],
  "a frame that is too short for its nonce": ["write(new Uint8Array([1, 0, 0, 0, 9]))", /1 bytes/],
  "a frame of no kind": ["frame(nonce, 99, empty)", /kind 99/],
  "text that is no frame": ["write(new TextEncoder().encode('hello, I am fine'))", /bytes/],
  "console output": ["console.log('x'.repeat(100))", /bytes/],
  "a flood": ["for (;;) frame(nonce, 3, new Uint8Array(1000), 17 + 1000)", /1017 bytes/],
  "a second frame behind the first": [
    "frame(nonce, 3, empty); frame(nonce, 3, empty)",
    /nobody asked for|not of this run/,
  ],
};

const hostile = (attack: string) =>
  spawnDeno({
    program: CHILD.replace("ATTACK", attack),
    maxPythonBytes: 1 << 28,
    hasKernelWalls: false,
  });

describe("a child process that lies to its parent", { timeout: 120_000 }, () => {
  for (const [what, [attack, told]] of Object.entries(LIES)) {
    test(`${what} ends the child and counts as its own failure`, async () => {
      const channel = new ChildChannel(hostile(attack));
      const { promise, resolve } = Promise.withResolvers<{ reason: string; isBySignal: boolean }>();
      const nonce = channel.listen(
        { onFrame: () => channel.listen({ onFrame: refuse, onEnd }), onEnd },
        1_000,
      );
      function onEnd(reason: string, isBySignal: boolean): void {
        resolve({ reason, isBySignal });
      }
      function refuse(frame: Frame): void {
        assert.fail(`a frame ${frame.kind} was taken`);
      }
      channel.keepAlive(true);
      channel.sendBare(nonce);
      const { reason, isBySignal } = await promise;
      channel.kill();
      assert.match(reason, told);
      assert.equal(isBySignal, false);
    });
  }

  test("kill() ends a silent child and its process group before its run has started", async () => {
    const channel = new ChildChannel(hostile(""));
    const { promise, resolve } = Promise.withResolvers<string>();
    channel.listen({ onFrame: () => undefined, onEnd: resolve });
    channel.keepAlive(true);
    channel.kill();
    assert.equal(await promise, "SIGKILL");
  });
});
