/** Options of the commands that a debugger may attach to. */

import inspector from "node:inspector";
import { bePatient } from "@hone/core";
import { UsageError } from "../errors.ts";
import type { Terminal } from "../terminal.ts";

export const debuggerArgs = {
  inspect: { type: "boolean", description: "Let a debugger attach to this process" },
  "inspect-wait": { type: "boolean", description: "The same, and begin once one has" },
  "inspect-port": {
    type: "string",
    description: "Port that it attaches to; 9229 by default, 0 takes any free one",
    valueHint: "PORT",
  },
} as const;

/** Those of the commands that start a stack. */
export const inProcessArgs = {
  "in-process": { type: "boolean", description: "Run the services in this process, as for a debugger" },
  ...debuggerArgs,
} as const;

const DEFAULT_PORT = 9_229;
const MAX_PORT = 65_535;
const HOST = "127.0.0.1";

/**
 * Lets a debugger attach where that is asked for. With one, deadlines wait for its user.
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
  // Already there where an editor started this process.
  if (isAsked && inspector.url() === undefined) {
    const port = readPort(args["inspect-port"]);
    inspector.open(port, HOST);
    if (inspector.url() === undefined) {
      throw new UsageError(
        `Cannot let a debugger attach as the port must be free: current value is ${port}; --inspect-port chooses another`,
      );
    }
  }
  const address = inspector.url();
  if (address === undefined) return;
  bePatient();
  if (!isWaiting) return;
  terminal.live(`waiting for a debugger at ${address} …`);
  inspector.waitForDebugger();
  terminal.live("");
}

/** @returns whether the services are to run in this process; a debugger has nothing to see otherwise. */
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
    throw new UsageError(
      `Cannot debug the services as --${given} goes with --in-process: current value is none`,
    );
  }
  if (isInProcess) openDebugger(terminal, args);
  return isInProcess;
}

function readPort(text: string | undefined): number {
  if (text === undefined) return DEFAULT_PORT;
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= MAX_PORT) return port;
  throw new UsageError(
    `Cannot let a debugger attach as --inspect-port must be a port, 0 to ${MAX_PORT}: current value is ${text}`,
  );
}
