/** Reports every message between threads, such as an engine's calls and answers, to the gate before it is sent. */

import { MessagePort } from "node:worker_threads";
import type { MomentGate } from "./moment-gate.ts";

/** The texts that identify an engine's message are no deeper than this in it. */
const MAX_DEPTH = 2;

export function watchThreads(gate: MomentGate): void {
  const { postMessage } = MessagePort.prototype;
  MessagePort.prototype.postMessage = function watchedPost(
    this: MessagePort,
    message: unknown,
    ...rest: never[]
  ) {
    const what = gate.isArmed() ? `post ${textsIn(message, MAX_DEPTH).join(" ")}` : "";
    const stop = gate.report(what);
    if (stop === "before") gate.meet(what, true);
    postMessage.call(this, message, ...rest);
    if (stop === "after") gate.meet(what, true);
  };
}

function textsIn(value: unknown, depth: number): string[] {
  if (typeof value === "string") return [value];
  if (depth === 0 || typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return [];
  return Object.values(value).flatMap((each) => textsIn(each, depth - 1));
}
