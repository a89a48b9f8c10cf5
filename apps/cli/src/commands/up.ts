/** `hone up`: starts the stack without a run and keeps it up. */

import { spawn } from "node:child_process";
import { mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import { delay, raceAbortable } from "@hone/core";
import { identifyProcess, isRunning, logTail, PRIVATE_FILE, privatePassage } from "@hone/embedded";
import { inProcessArgs, openInProcess } from "../debug/debugger-args.ts";
import { honeCommand } from "../define.ts";
import { UsageError } from "../errors.ts";
import { allowModelFolders, shownPath } from "../project.ts";
import type { Session } from "../session.ts";
import { parseReplicas, REPLICAS_VARIABLE } from "../stack/replicas.ts";
import { pageLink } from "../stack/secrets/http-token.ts";
import { SERVICES, type ServiceName } from "../stack/services.ts";
import { shownBus } from "../stack/shown-bus.ts";
import { readStack } from "../stack/stack-file.ts";
import { startAndReport, stopAndReport } from "../stack/use-stack.ts";

/** Longer than every deadline for starting a part of the stack. */
const UP_DEADLINE_MS = 180_000;
const LOOK_EVERY_MS = 100;

export const upCommand = honeCommand({
  name: "up",
  description: "Start the bus, the database and the six services, and keep them up until Ctrl-C or hone down",
  args: {
    detach: { type: "boolean", description: "Run in the background, and return once everything is up" },
    without: {
      type: "string",
      description: "Services to leave out, because you start them yourself, for example in a debugger",
      valueHint: "NAME,NAME",
    },
    replicas: {
      type: "string",
      description: `Services to run as several processes; overrides ${REPLICAS_VARIABLE}`,
      valueHint: "NAME=COUNT,NAME=COUNT",
    },
    models: {
      type: "string",
      description: "Folders outside of the project that run files may load models from",
      valueHint: "FOLDER,FOLDER",
    },
    ...inProcessArgs,
    "log-level": {
      type: "enum",
      options: ["debug", "info", "warn", "error"],
      default: "info",
      description: "Log level of the services",
    },
  },
  run: async (session, args) => {
    const without = serviceNames(args.without);
    allowModelFolders((args.models ?? "").split(",").filter((folder) => folder !== ""));
    const { replicas: text = process.env[REPLICAS_VARIABLE] ?? "" } = args;
    const replicas = parseReplicas(
      text,
      args.replicas === undefined ? REPLICAS_VARIABLE : "--replicas",
      without,
    );
    const isInProcess = openInProcess(session.terminal, args);
    if (args.detach && isInProcess) {
      throw new UsageError(
        "--detach and --in-process exclude each other: services in this process end with it",
      );
    }
    if (args.detach) return detach(session, args["log-level"], without, text);
    const stack = await startAndReport(session, { logLevel: args["log-level"], replicas, isInProcess });
    try {
      session.terminal.line("hone run FILE starts a run; Ctrl-C or hone down stops the stack");
      throw await raceAbortable(stack.failed, session.signal);
    } catch (error) {
      if (!session.signal.aborted) throw error;
    } finally {
      await stopAndReport(session, stack);
    }
    return 0;
  },
});

function serviceNames(text: string | undefined): ServiceName[] {
  const names = (text ?? "").split(",").filter((name) => name !== "");
  return names.map((name) => {
    const known = SERVICES.find((each) => each === name);
    if (known !== undefined) return known;
    throw new UsageError(
      `there is no service ${name} for --without; the services are ${SERVICES.join(", ")}`,
    );
  });
}

/** Runs `hone up` in a process of its own and waits until it is up. */
async function detach(
  { terminal, project, signal }: Session,
  logLevel: string,
  without: readonly ServiceName[],
  replicas: string,
): Promise<number> {
  await privatePassage(project.state);
  mkdirSync(project.logs, { recursive: true });
  const logFile = join(project.logs, "up.log");
  const log = openSync(logFile, "w", PRIVATE_FILE);
  const args = [
    "up",
    "--log-level",
    logLevel,
    ...(without.length > 0 ? ["--without", without.join(",")] : []),
    ...(replicas === "" ? [] : ["--replicas", replicas]),
  ];
  const { HONE_BOOTSTRAP_PID: _, ...env } = process.env;
  const main = join(import.meta.dirname, "..", "main.ts");
  const child = spawn(process.execPath, [main, ...args], {
    detached: true,
    stdio: ["ignore", log, log],
    env,
  });
  child.unref();
  const identity = identifyProcess(child.pid ?? 0);
  const until = performance.now() + UP_DEADLINE_MS;
  while (performance.now() < until) {
    const record = readStack(project);
    if (record !== undefined && record.supervisor.pid === child.pid) {
      terminal.line(`bus    ${shownBus(project, record.natsUrl)}`);
      terminal.line(`page   ${terminal.style("cyan", pageLink(record))}`);
      terminal.line(`up in process ${child.pid}; hone down stops it`);
      return 0;
    }
    if (identity === undefined || !isRunning(identity)) break;
    await delay(LOOK_EVERY_MS, { signal });
  }
  throw new UsageError(
    `the stack did not come up; the end of its log ${shownPath(logFile)}:\n${logTail(logFile)}`,
  );
}
