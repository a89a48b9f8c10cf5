/**
 * `hone submit FILE`: a run on a bus that is not this machine's own, such as a cluster's.
 *
 * The bus is where HONE_NATS_URL says, or the file that HONE_NATS_URL_FILE names, as for the services.
 */

import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { connectBus } from "@hone/messaging";
import { honeCommand } from "../define.ts";
import { UsageError } from "../errors.ts";
import { userFolder } from "../project.ts";
import { followFile, requireCompleted } from "../run/follow-file.ts";
import { loadRunFile } from "../run/load-run-file.ts";
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
      const outcome = await followFile(bus, loaded, { origin: "", printer, terminal, signal });
      printer.close();
      if (outcome.kind === "ended") printer.end(printer.view.ended?.checkpoint);
      requireCompleted(outcome, printer);
    } finally {
      printer.close();
      await bus.close();
    }
    return 0;
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
