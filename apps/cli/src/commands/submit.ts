/**
 * `hone submit FILE`: submits a run to a bus that is not this machine's own, such as a cluster's.
 *
 * As for the services, the address of the bus is in HONE_NATS_URL, or in the file that HONE_NATS_URL_FILE names. With --dry-run
 * the services are asked whether they would accept the run, and nothing is published.
 */

import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { type Bus, connectBus, RunControl, ServiceName, subjects } from "@hone/messaging";
import type { ServiceAnswer } from "../check/dry-run.ts";
import { honeCommand } from "../define.ts";
import { UsageError } from "../errors.ts";
import { userFolder } from "../project.ts";
import { followFile, requireCompleted } from "../run/follow-file.ts";
import { type LoadedRun, loadRunFile } from "../run/load-run-file.ts";
import { RunPrinter } from "../run/run-printer.ts";
import type { Session } from "../session.ts";
import { type Terminal, table } from "../terminal.ts";

const CONNECT_TIMEOUT_MS = 30_000;

export const submitCommand = honeCommand({
  name: "submit",
  description: "Submit a run file to the bus that HONE_NATS_URL names, and follow the run to its end",
  args: {
    file: { type: "positional", required: true, description: "Run file, YAML or JSON", valueHint: "FILE" },
    "dry-run": {
      type: "boolean",
      description: "Publish nothing; ask the services whether they are ready and would accept the run",
    },
    wait: {
      type: "string",
      description: "With --dry-run: seconds that services may take to become ready; 0 by default",
      valueHint: "SECONDS",
    },
    services: {
      type: "string",
      description: "With --dry-run: services that must answer, separated by commas; all by default",
      valueHint: "NAMES",
    },
  },
  run: async (session, args) => {
    const { terminal, project, signal } = session;
    const asked = args["dry-run"] === true ? readQuestion(args) : refuseQuestion(args);
    const loaded = await loadRunFile(resolve(userFolder(), args.file), project.folder);
    const bus = await connectBus({
      url: await busAddress(process.env),
      name: "hone submit",
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
      signal,
    });
    if (asked !== undefined) return askOnly(session, bus, loaded, asked);
    const printer = new RunPrinter(terminal);
    try {
      const outcome = await followFile(bus, loaded, { origin: "", printer, terminal, signal });
      printer.close();
      if (outcome.kind === "ended") printer.end(printer.view.ended?.checkpoint);
      const subject = subjects.runControl(RunControl.resume, printer.view.runId || "*");
      requireCompleted(outcome, printer, { resumeHint: `nats req ${subject} ''` });
    } finally {
      printer.close();
      await bus.close();
    }
    return 0;
  },
});

interface Question {
  readonly services: readonly ServiceName[];
  readonly waitMs: number;
}

interface QuestionArgs {
  readonly wait?: string | undefined;
  readonly services?: string | undefined;
}

/** @throws {UsageError} */
function readQuestion({ wait = "0", services }: QuestionArgs): Question {
  if (!/^\d{1,5}$/.test(wait)) {
    throw new UsageError(`--wait ${wait} is not a number of seconds from 0 to 99999`);
  }
  const known = Object.values(ServiceName);
  const named = services?.split(",").map((each) => {
    const found = known.find((name) => name === each.trim());
    if (found === undefined)
      throw new UsageError(
        `there is no service "${each}" for --services; the services are ${known.join(", ")}`,
      );
    return found;
  });
  return { services: named ?? known, waitMs: Number(wait) * 1_000 };
}

/** @throws {UsageError} for options that need --dry-run. */
function refuseQuestion({ wait, services }: QuestionArgs): undefined {
  if (wait !== undefined || services !== undefined)
    throw new UsageError("--wait and --services need --dry-run; without it the run is submitted");
}

async function askOnly(
  { terminal, signal }: Session,
  bus: Bus,
  loaded: LoadedRun,
  { services, waitMs }: Question,
): Promise<number> {
  const { dryRun } = await import("../check/dry-run.ts");
  try {
    const answers = await dryRun(bus, loaded, { services, waitMs, signal });
    for (const line of table(answers.flatMap((answer) => rowsOf(terminal, answer)))) terminal.line(line);
    const isAccepted = answers.every(({ waitsFor, problems }) => waitsFor.length + problems.length === 0);
    terminal.line(
      `run ${loaded.name} ${isAccepted ? "would be accepted" : "would not be accepted now"}; nothing was published`,
    );
    return isAccepted ? 0 : 1;
  } finally {
    await bus.close();
  }
}

function rowsOf(terminal: Terminal, { service, waitsFor, problems }: ServiceAnswer): string[][] {
  if (waitsFor.length + problems.length === 0) return [[terminal.style("green", "ready"), service, ""]];
  return [
    ...waitsFor.map((reason) => [terminal.style("yellow", "not ready"), service, reason]),
    ...problems.map((problem) => [terminal.style("red", "refuses"), service, problem]),
  ];
}

/** @returns the address of the bus. @throws {UsageError} when the environment names none. */
async function busAddress(env: NodeJS.ProcessEnv): Promise<string> {
  if (env.HONE_NATS_URL) return env.HONE_NATS_URL;
  const file = env.HONE_NATS_URL_FILE;
  if (!file) throw new UsageError("HONE_NATS_URL is not set; it must hold the address of the bus");
  try {
    return (await readFile(file, "utf8")).trim();
  } catch (cause) {
    throw new UsageError(`the file ${file}, which HONE_NATS_URL_FILE names, cannot be read`, { cause });
  }
}
