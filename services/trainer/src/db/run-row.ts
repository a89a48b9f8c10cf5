/**
 * Turns a row of `runs` into a run record. Only the trainer writes rows, but people edit them and disks damage them, so the
 * values from which a run goes on are checked here: a broken row ends its own run and no other.
 */

import { ConfigError, type RunConfig, resolveRunConfig } from "@hone/config";
import { describeError, isRunName, runIdOf } from "@hone/core";
import { z } from "zod";
import { BrokenRowError } from "../domain/errors.ts";
import type { Recovery, RunRecord, RunStage } from "../domain/run/run-record.ts";
import type { StateFiles } from "../domain/state/state-files.ts";
import type { runs } from "./schema.ts";

type RunRow = typeof runs.$inferSelect;

/** Paths below the state's folder; none of them may lead out of it. */
const stateFiles = z.record(
  z.string().regex(/^(?!\.\.?(\/|$))[^/\0]+(\/(?!\.\.?(\/|$))[^/\0]+)*$/),
  z.string().regex(/^[0-9a-f]{64}$/),
);

/** @throws {BrokenRowError} naming the column whose value is not valid. */
export function recordOf(row: RunRow): RunRecord {
  const config = configOf(row);
  checkId(row, config);
  checkState(row);
  return {
    runId: row.runId,
    requestSequence: row.requestSequence,
    stage: row.stage as RunStage,
    config,
    configJson: row.configJson,
    version: row.version ?? undefined,
    stateFolder: row.stateFolder,
    stateDigest: row.stateDigest,
    arithmetic: row.arithmetic,
    stateFiles: filesOf(row, "state_files", row.stateFiles),
    recovery: recoveryOf(row),
    nextSequence: row.nextSequence,
    epoch: row.epoch,
    tenures: row.tenures,
    resumptions: row.resumptions,
    isCancelRequested: row.isCancelRequested,
    isPauseRequested: row.isPauseRequested,
    endReason: row.endReason,
  };
}

function recoveryOf(row: RunRow): Recovery | undefined {
  const { version, stateFolder, stateDigest, recoveryFolder, recoveryDigest, recoveryVersion, warmUpdates } =
    row;
  if (recoveryFolder !== "") {
    return {
      folder: recoveryFolder,
      digest: recoveryDigest,
      files: filesOf(row, "recovery_files", row.recoveryFiles),
      version: recoveryVersion ?? undefined,
      warmUpdates,
    };
  }
  if (version === null) return undefined;
  const files = filesOf(row, "state_files", row.stateFiles);
  return { folder: stateFolder, digest: stateDigest, files, version, warmUpdates: 0 };
}

/** The files are checked because their names are joined to a folder, from which they are read. */
function filesOf({ runId }: RunRow, column: string, files: unknown): StateFiles {
  const parsed = stateFiles.safeParse(files);
  if (parsed.success) return parsed.data;
  const rule = `${column} must name files of the state, each with its SHA-256`;
  throw new BrokenRowError(runId, rule, JSON.stringify(files).slice(0, 200));
}

function configOf({ runId, configJson }: RunRow): RunConfig {
  try {
    return resolveRunConfig(JSON.parse(configJson));
  } catch (cause) {
    if (!(cause instanceof SyntaxError) && !(cause instanceof ConfigError)) throw cause;
    throw new BrokenRowError(runId, "config_json must be a run file", describeError(cause), { cause });
  }
}

/** The id is checked because subjects and folders are named after it. */
function checkId({ runId, requestSequence }: RunRow, { name }: RunConfig): void {
  const expected = isRunName(name) ? runIdOf(name, requestSequence) : name;
  if (runId === expected) return;
  throw new BrokenRowError(runId, `run_id must be ${expected}, from its name and request`, runId);
}

/** The folders are checked because one elsewhere would be read, served and in the end deleted. */
function checkState(row: RunRow): void {
  const { runId, version, stateFolder, nextSequence, recoveryFolder, recoveryVersion } = row;
  const part = recoveryVersion === null ? `warm-${row.warmUpdates}` : String(recoveryVersion);
  const isReached = version === null ? recoveryVersion === null : (recoveryVersion ?? 0) <= version;
  if (
    recoveryFolder !== "" &&
    (!isReached || !new RegExp(`^runs/${runId}/state/${part}-\\d+$`).test(recoveryFolder))
  ) {
    const rule = `recovery_folder must be runs/${runId}/state/${part}-<epoch>, of no later version than the last`;
    throw new BrokenRowError(runId, rule, JSON.stringify(recoveryFolder));
  }
  const state = new RegExp(`^runs/${runId}/state/${version}-\\d+$`);
  if (version === null ? stateFolder !== "" : !state.test(stateFolder)) {
    const rule =
      version === null
        ? "state_folder must be empty before version 0"
        : `state_folder must be runs/${runId}/state/${version}-<epoch>`;
    throw new BrokenRowError(runId, rule, JSON.stringify(stateFolder));
  }
  if (nextSequence >= 1) return;
  throw new BrokenRowError(runId, "next_sequence must be at least 1", String(nextSequence));
}
