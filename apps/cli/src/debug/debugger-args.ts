/** Options for attaching a debugger to a command. */

import inspector from "node:inspector";
import { extendDeadlines } from "@hone/core";
import { UsageError } from "../errors.ts";
import type { Terminal } from "../terminal.ts";

export const debuggerArgs = {
  inspect: { type: "boolean", description: "Let a debugger attach to this process" },
  "inspect-wait": { type: "boolean", description: "Let a debugger attach, and wait for it before beginning" },
  "inspect-port": {
    type: "string",
    description: "Port for the debugger; 9229 by default, 0 chooses a free one",
    valueHint: "PORT",
  },
} as const;

/** The same for commands that start a stack. */
export const inProcessArgs = {
  "in-process": {
    type: "boolean",
    description: "Run the services in this process, for example to debug them",
  },
  ...debuggerArgs,
} as const;

const DEFAULT_PORT = 9_229;
const MAX_PORT = 65_535;
const HOST = "127.0.0.1";

/**
 * Lets a debugger attach if an option asks for it. Deadlines are then suspended, as the user may stop at breakpoints.
 * @throws {UsageError} when the port is taken.
 */
export function openDebugger(
  terminal: Terminal,
  args: {
    readonly inspect?: boolean | undefined;
    readonly "inspect-wait"?: boolean | undefined;
    readonly "inspect-port"?: string | undefined;
  },
): void {
  const isWaiting = args["inspect-wait"] === true;
  const isAsked = args.inspect === true || isWaiting || args["inspect-port"] !== undefined;
  // The inspector is already open if an editor started this process.
  if (isAsked && inspector.url() === undefined) {
    const port = readPort(args["inspect-port"]);
    inspector.open(port, HOST);
    if (inspector.url() === undefined) {
      throw new UsageError(
        `port ${port} for the debugger is not free; choose another one with --inspect-port`,
      );
    }
  }
  const address = inspector.url();
  if (address === undefined) return;
  extendDeadlines();
  if (!isWaiting) return;
  terminal.live(`waiting for a debugger at ${address} …`);
  inspector.waitForDebugger();
  terminal.live("");
}

/** @returns whether the services run in this process. @throws {UsageError} for a debugger option without --in-process, which would have no effect. */
export function openInProcess(
  terminal: Terminal,
  args: Parameters<typeof openDebugger>[1] & { readonly "in-process"?: boolean | undefined },
): boolean {
  const isInProcess = args["in-process"] === true;
  const given = Object.keys(debuggerArgs).find((name) => {
    const value = args[name as keyof typeof debuggerArgs];
    return value !== undefined && value !== false;
  });
  if (given !== undefined && !isInProcess) {
    throw new UsageError(`--${given} needs --in-process, which runs the services in this process`);
  }
  if (isInProcess) openDebugger(terminal, args);
  return isInProcess;
}

function readPort(text: string | undefined): number {
  if (text === undefined) return DEFAULT_PORT;
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= MAX_PORT) return port;
  throw new UsageError(`--inspect-port ${text} is not a port from 0 to ${MAX_PORT}`);
}
