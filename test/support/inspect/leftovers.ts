/** Finds what ended runs left in bus and state folder that should have been removed. */

import { readdirSync } from "node:fs";
import path from "node:path";
import { StreamName } from "@hone/messaging";
import { eventually } from "@hone/testing";
import type { TestStack } from "../stack.ts";

/** Streams that must be empty once every run has ended; EVENTS is kept for a week. */
const EMPTY_STREAMS = [StreamName.runs, StreamName.jobs, StreamName.episodes, StreamName.dead];
/** The last state and the one before it are kept for readers. */
const KEPT_STATES = 2;

/** @returns one line for each leftover. */
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

/** Number of rollouts that the tracer has, by run. */
export async function storedRollouts({ sql }: TestStack): Promise<Record<string, number>> {
  const rows = await sql<{ run_id: string; count: number }[]>`
    select run_id, count(*)::int as count from tracer.rollouts group by run_id`;
  return Object.fromEntries(rows.map(({ run_id, count }) => [run_id, count]));
}

/** Waits until `look` finds nothing. @throws what it found last. */
export async function untilTidy(look: () => Promise<string[]>, deadlineMs: number): Promise<void> {
  let left: string[] = [];
  const isTidy = async () => {
    left = await look();
    return left.length === 0;
  };
  await eventually("a tidy stack", isTidy, { deadlineMs }).catch((cause: unknown) => {
    throw new Error(`the stack is not tidy:\n${left.join("\n")}`, { cause });
  });
}
