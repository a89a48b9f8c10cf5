import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { endThread } from "./end-thread.ts";

const ENDS_WHEN_ASKED = `const { parentPort } = require("node:worker_threads"); parentPort.on("message", () => parentPort.close())`;
/** As a native call that takes long. */
const IS_DEAF = `Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)`;

async function threadOf(code: string): Promise<Worker> {
  const thread = new Worker(code, { eval: true });
  await once(thread, "online");
  return thread;
}

test("a thread that is asked ends by itself, and may be ended again", async () => {
  const thread = await threadOf(ENDS_WHEN_ASKED);
  const exited = once(thread, "exit");
  await endThread(thread, () => thread.postMessage("end"));
  assert.deepEqual(await exited, [0]);
  await endThread(thread, () => assert.fail("an ended thread is asked"));
});

test("a thread that does not end in time is left alone, and is not stopped in the middle", async () => {
  const thread = await threadOf(IS_DEAF);
  await endThread(thread, () => thread.postMessage("end"), 20);
  assert.notEqual(thread.threadId, -1);
  await thread.terminate();
});
