/** Runs one sitting of a bench, and writes the machine, whether it was quiet, and the results as JSON. */

import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { describeError, HoneError, printUsage, UsageError } from "@hone/core";
import { describeMachine, findOtherWork } from "./machine.ts";

/** The common part of all reports. */
export interface SittingReport {
  readonly machine: string;
  /** ISO 8601. */
  readonly startedAt: string;
  readonly durationSeconds: number;
  /** Why the figures may be wrong: other processes used the machine. Absent if it was quiet. */
  readonly busy?: string;
}

/**
 * Measures, prints the machine before and the duration after the results, and writes them all to the JSON file. An error,
 * also one of the options, is printed as its message, with exit code 1.
 */
export async function holdSitting<Options extends { readonly jsonFile: string }, Found extends object>(
  readOptions: () => Options,
  measure: (options: Options) => Promise<Found>,
): Promise<void> {
  try {
    const options = readOptions();
    const { jsonFile } = options;
    const startedAt = new Date();
    await mkdir(path.dirname(jsonFile), { recursive: true });
    const machine = await describeMachine(path.dirname(jsonFile));
    console.log(machine);
    const busy = await findOtherWork();
    if (busy !== undefined) console.log(warning(busy));
    const found = await measure(options);
    const sitting: SittingReport = {
      machine,
      startedAt: startedAt.toISOString(),
      durationSeconds: Math.round((Date.now() - startedAt.getTime()) / 1_000),
      ...(busy === undefined ? {} : { busy }),
    };
    await writeFile(jsonFile, `${JSON.stringify({ ...sitting, ...found }, undefined, 2)}\n`);
    if (busy !== undefined) console.log(`\n${warning(busy)}`);
    console.log(`\n${sitting.durationSeconds} s; written to ${path.relative(process.cwd(), jsonFile)}`);
  } catch (error) {
    if (error instanceof UsageError) return printUsage(process, error);
    console.error(error instanceof HoneError ? describeError(error) : error);
    process.exitCode = 1;
  }
}

function warning(busy: string): string {
  return `NOT A QUIET MACHINE, do not compare these figures: ${busy}`;
}
