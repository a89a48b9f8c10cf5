/** Tells the gate of every message between threads, such as the calls of an engine and its answers, before it is sent. */

import { MessagePort } from "node:worker_threads";
import type { MomentGate } from "./moment-gate.ts";

/** Engines name what they want, and what it is about, no deeper than this. */
const MAX_DEPTH = 2;

export function watchThreads(gate: MomentGate): void {
  const { postMessage } = MessagePort.prototype;
  MessagePort.prototype.postMessage = function watchedPost(
    this: MessagePort,
    message: unknown,
    ...rest: never[]
  ) {
    const what = gate.isArmed() ? `post ${textsIn(message, MAX_DEPTH).join(" ")}` : "";
    const stop = gate.tell(what);
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
