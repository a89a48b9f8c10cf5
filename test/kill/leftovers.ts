/** What runs that ended left behind and nobody needs. */

import { readdirSync } from "node:fs";
import path from "node:path";
import { StreamName } from "@hone/messaging";
import type { TestStack } from "../support/stack.ts";

/** Streams that hold nothing once every run has ended; EVENTS is kept for a week. */
const EMPTY_STREAMS = [StreamName.runs, StreamName.jobs, StreamName.episodes, StreamName.dead];
/** The last state and the one before it stay, for an owner who is still reading. */
const KEPT_STATES = 2;

/** @returns one line for each thing that is left; none when all is tidy. */
export async function leftoversOf({ bus, sql, stateFolder }: TestStack): Promise<string[]> {
  const left: string[] = [];
  for (const stream of EMPTY_STREAMS) {
    const { state } = await bus.manager.streams.info(stream, { subjects_filter: ">" });
    for (const [subject, count] of Object.entries(state.subjects ?? {}))
      left.push(`${stream}: ${count} of ${subject}`);
  }
  const runs = await sql<{ run_id: string; version: number; state_folder: string }[]>`
    select run_id, version, state_folder from trainer.runs`;
  for (const { run_id, version, state_folder } of runs) {
    const folder = path.dirname(path.join(stateFolder, state_folder));
    const states = readdirSync(folder);
    const unneeded = states.filter(
      (name) => !(Number(/^(\d+)-\d+$/.exec(name)?.[1]) > version - KEPT_STATES),
    );
    if (unneeded.length > 0 || states.length > KEPT_STATES)
      left.push(`${run_id}: states ${states.join(", ")}`);
    for (const name of readdirSync(path.join(folder, "..", "checkpoints"))) {
      if (!/^step-\d+$/.test(name)) left.push(`${run_id}: checkpoint ${name}`);
    }
  }
  return left;
}

/** Rollouts by run that the tracer has, for runs that ended. */
export async function storedRollouts({ sql }: TestStack): Promise<Record<string, number>> {
  const rows = await sql<{ run_id: string; count: number }[]>`
    select run_id, count(*)::int as count from tracer.rollouts group by run_id`;
  return Object.fromEntries(rows.map(({ run_id, count }) => [run_id, count]));
}
