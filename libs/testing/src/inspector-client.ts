/** A debugger for tests: the part of the inspector's protocol that setting breakpoints and halting at them needs. */

import { deadline } from "@hone/core";

/** A halt at a breakpoint. */
export interface Halt {
  /** Address of the script, as the process has loaded it. */
  readonly url: string;
  /** From 0. */
  readonly lineNumber: number;
}

export interface InspectorClient extends Disposable {
  /** Makes the process halt before a line. @param lineNumber from 0. @returns what takes it away again. */
  breakAt(url: string, lineNumber: number): Promise<() => Promise<void>>;
  /** Lets a process begin that waits for a debugger. */
  begin(): Promise<void>;
  nextHalt(): Promise<Halt>;
  resume(): Promise<void>;
}

interface Answer {
  readonly result?: { readonly breakpointId?: string };
  readonly error?: { readonly message: string };
}

/** Time limit of each answer and of each wait for a halt; the machine may be busy. */
const WAIT_MS = 60_000;

/** @param address of the inspector, `ws://…`. */
export async function connectInspector(address: string): Promise<InspectorClient> {
  const socket = new WebSocket(address);
  await deadline("the debugger's connection", WAIT_MS, () => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    socket.addEventListener("open", () => resolve(), { once: true });
    socket.addEventListener("error", () => reject(new Error(`no inspector at ${address}`)), { once: true });
    return promise;
  });
  const calls = new Map<number, (answer: Answer) => void>();
  const scripts = new Map<string, string>();
  const halts: Halt[] = [];
  let waiting: ((halt: Halt) => void) | undefined;
  socket.addEventListener("message", ({ data }) => {
    const message = JSON.parse(String(data));
    if (message.id !== undefined) calls.get(message.id)?.(message);
    if (message.method === "Debugger.scriptParsed") scripts.set(message.params.scriptId, message.params.url);
    if (message.method !== "Debugger.paused") return;
    const { scriptId, lineNumber } = message.params.callFrames[0].location;
    const halt = { url: scripts.get(scriptId) ?? "", lineNumber };
    if (waiting === undefined) halts.push(halt);
    else waiting(halt);
    waiting = undefined;
  });
  let count = 0;
  const send = (method: string, params: object = {}) =>
    deadline(`the answer to ${method}`, WAIT_MS, async () => {
      const id = ++count;
      const answered = new Promise<Answer>((resolve) => calls.set(id, resolve));
      socket.send(JSON.stringify({ id, method, params }));
      const { error, result } = await answered;
      calls.delete(id);
      if (error !== undefined) throw new Error(`${method}: ${error.message}`);
      return result;
    });
  await send("Debugger.enable");
  return {
    async breakAt(url, lineNumber) {
      const set = await send("Debugger.setBreakpointByUrl", { url, lineNumber });
      return async () => void (await send("Debugger.removeBreakpoint", { breakpointId: set?.breakpointId }));
    },
    begin: async () => void (await send("Runtime.runIfWaitingForDebugger")),
    nextHalt: () =>
      deadline("a halt", WAIT_MS, async () => {
        const known = halts.shift();
        if (known !== undefined) return known;
        return new Promise<Halt>((resolve) => {
          waiting = resolve;
        });
      }),
    resume: async () => void (await send("Debugger.resume")),
    [Symbol.dispose]: () => socket.close(),
  };
}
