/**
 * `hone submit FILE`: a run on a bus that is not this machine's own, such as a cluster's.
 *
 * The bus is where HONE_NATS_URL says, or the file that HONE_NATS_URL_FILE names, as for the services.
 */

import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { connectBus } from "@hone/messaging";
import { RunPhase } from "@hone/proto-gen/run";
import { honeCommand } from "../define.ts";
import { RunFailedError, UsageError } from "../errors.ts";
import { userFolder } from "../project.ts";
import { followRequest, submitRun } from "../run/follow-run.ts";
import { loadRunFile, problemLines } from "../run/load-run-file.ts";
import { RunPrinter } from "../run/run-printer.ts";

const CONNECT_TIMEOUT_MS = 30_000;

export const submitCommand = honeCommand({
  name: "submit",
  description: "Submit a run file to the bus that HONE_NATS_URL names, and follow the run to its end",
  args: {
    file: { type: "positional", required: true, description: "Run file, YAML or JSON", valueHint: "FILE" },
  },
  run: async ({ terminal, project, signal }, args) => {
    const loaded = await loadRunFile(resolve(userFolder(), args.file), project.folder);
    const bus = await connectBus({
      url: await busAddress(process.env),
      name: "hone submit",
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
      signal,
    });
    const printer = new RunPrinter(terminal);
    try {
      const request = await submitRun(bus, loaded.name, loaded.text, signal);
      terminal.line(`run ${terminal.style("bold", request.runId)}`);
      const outcome = await followRequest(bus, request, printer.followOptions(signal));
      if (outcome.kind === "refused") {
        const lines = problemLines(outcome.problems).map((line) => `  ${line}`);
        throw new RunFailedError(`The run was refused:\n${lines.join("\n")}`);
      }
    } finally {
      printer.close();
      await bus.close();
    }
    const { ended } = printer.view;
    printer.end(ended?.checkpoint);
    if (ended?.phase === RunPhase.COMPLETED) return 0;
    throw new RunFailedError(`The run did not complete: ${ended?.reason || "no reason was given"}`);
  },
});

/** @throws {UsageError} when the environment names no bus. */
async function busAddress(env: NodeJS.ProcessEnv): Promise<string> {
  if (env.HONE_NATS_URL) return env.HONE_NATS_URL;
  const file = env.HONE_NATS_URL_FILE;
  if (!file)
    throw new UsageError("Cannot submit a run as HONE_NATS_URL must name the bus: current value is absent");
  try {
    return (await readFile(file, "utf8")).trim();
  } catch (cause) {
    throw new UsageError(
      `Cannot submit a run as HONE_NATS_URL_FILE must be readable: current value is ${file}`,
      {
        cause,
      },
    );
  }
}
