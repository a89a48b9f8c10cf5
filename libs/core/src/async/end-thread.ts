/** Ends a thread that calls native code, such as onnxruntime. */

import type { Worker } from "node:worker_threads";

/** A pass of a large model's microbatch takes seconds; a thread is seldom asked for while it is in a longer call. */
const GRACE_MS = 30_000;

/**
 * Asks a thread to end and waits until it has, at most `graceMs` milliseconds. A thread that is still in a native call by then
 * is left alone: it ends after that call, and does not keep the process alive.
 *
 * `Worker.terminate()` would stop its JavaScript at once. But a native call that is under way then cannot hand over its
 * result, and the exception of the addon reaches nobody who could catch it: the whole process ends with SIGABRT.
 *
 * @param ask sends the message on which the thread ends itself between two native calls, by closing its port and
 * leaving nothing open.
 */
export async function endThread(thread: Worker, ask: () => void, graceMs = GRACE_MS): Promise<void> {
  // The number of a thread that has ended.
  if (thread.threadId === -1) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const leave = () => {
    thread.unref();
    resolve();
  };
  const timer = setTimeout(leave, graceMs);
  thread.once("exit", () => resolve());
  ask();
  await promise;
  clearTimeout(timer);
}
