/**
 * Keeps whole states of a run (`trainer.keepStates`), and gives them to a run that trains its rollouts again from a later step
 * on (`replay.from`).
 *
 * Q1: a version that is due is committed with a whole state, which is kept before the next version is committed. Where an owner
 *     dies in between, the next one keeps it: a restart begins with that state.
 * Q2: what is kept is what the commit recorded, file by file, with the digests, so that a changed file is noticed.
 */

import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { describeError } from "@hone/core";
import { z } from "zod";
import { BrokenKeptStateError } from "../errors.ts";
import { diskWait, WaitOwner } from "../report/wait.ts";
import type { RunContext } from "../run/run-context.ts";
import type { CommittedState } from "./check-state.ts";
import { linkOrCopy } from "./link-or-copy.ts";
import { isKeptStateDue } from "./state-cadence.ts";

/** The record of a kept state, beside its files. */
export const KEPT_RECORD = "kept.json";

const recordSchema = z.strictObject({
  /** SHA-256 of the weights, and of each file, as the commit recorded them. */
  digest: z.string(),
  files: z.record(z.string(), z.string()),
  /** The figures of the step that made the version; later steps go on from some of them. */
  metrics: z.record(z.string(), z.number()),
});

/** A state that was kept, with the figures of its step. */
export interface KeptState extends CommittedState {
  /** Relative to the state folder. */
  readonly folder: string;
  readonly metrics: Readonly<Record<string, number>>;
}

/** Keeps the state that a restart would begin with, if its version is due, waiting until the disk takes it (Q1). */
export async function keepState({
  run,
  folders,
  ledger,
  reporter,
  progress,
}: Pick<RunContext, "run" | "folders" | "ledger" | "reporter" | "progress">): Promise<void> {
  const { recovery } = progress;
  if (recovery?.version === undefined || !isKeptStateDue(run.config, recovery.version)) return;
  const { version, folder, digest, files } = recovery;
  const step = await reporter.untilAvailable(
    { text: "the database (figures of a step)", owner: WaitOwner.database },
    () => ledger.step(run.runId, version),
  );
  // JSON has no other numbers than finite ones.
  const metrics = Object.entries(step?.metrics ?? {}).filter(([, value]) => Number.isFinite(value));
  const record = JSON.stringify({ digest, files, metrics: Object.fromEntries(metrics) });
  const state = folders.absolute(folder);
  await reporter.untilAvailable(diskWait(folders.keptState(version)), () =>
    folders.writeKeptState(version, run.epoch, async (unfinished) => {
      for (const name of Object.keys(files)) {
        const kept = path.join(unfinished, name);
        await mkdir(path.dirname(kept), { recursive: true });
        await linkOrCopy(path.join(state, name), kept);
      }
      await writeFile(path.join(unfinished, KEPT_RECORD), record);
    }),
  );
}

/** What the run that is replayed kept of a version. @throws {BrokenKeptStateError} */
export async function readKeptState(
  { run, folders, reporter }: Pick<RunContext, "run" | "folders" | "reporter">,
  version: number,
): Promise<KeptState> {
  const recorded = folders.ofRun(run.config.replay!.run);
  const folder = recorded.keptState(version);
  const file = path.join(recorded.absolute(folder), KEPT_RECORD);
  return reporter.untilAvailable(diskWait(folder), () =>
    recorded.using(folder, async () => {
      try {
        return { folder, ...recordSchema.parse(JSON.parse(await readFile(file, "utf8"))) };
      } catch (error) {
        throw new BrokenKeptStateError(file, describeError(error), { cause: error });
      }
    }),
  );
}
