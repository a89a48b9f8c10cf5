/** The status that a run has before this process did anything for it, and the run file that everyone may read. */

import { type RunConfig, resolveRunConfig, tokenizerDigest } from "@hone/config";
import type { RunRecord } from "../run/run-record.ts";
import type { RunFolders } from "../state/run-folders.ts";
import { NO_WAIT, RunPhase, type RunStatus } from "./run-status.ts";

/** State of a run that was just taken over. */
export function statusOf(run: RunRecord, folders: RunFolders): RunStatus {
  return {
    runId: run.runId,
    phase: RunPhase.waiting,
    version: run.version ?? 0,
    location: run.stateFolder,
    digest: run.stateDigest,
    epoch: run.epoch,
    totalSteps: run.config.trainer.steps,
    ...NO_WAIT,
    configJson: publicConfigJson(run, folders),
    tokenizerDigest: digestOfTokenizer(run),
    oldestVersion: run.version ?? 0,
    resumption: run.resumptions,
    quantization: run.config.rollout.quantization,
  };
}

function digestOfTokenizer({ config: { model } }: RunRecord): string {
  return "init" in model && typeof model.init.tokenizer === "object"
    ? tokenizerDigest(model.init.tokenizer.files)
    : "";
}

/** The resolved run file without the tokenizer's text, which may be large: its place in the run's folder instead. */
export function publicConfigJson(run: RunRecord, folders: RunFolders): string {
  const { model } = run.config;
  const { tokenizer } = folders;
  const shown = "path" in model ? { ...model, tokenizer } : { init: { ...model.init, tokenizer } };
  return JSON.stringify({ ...run.config, model: shown });
}

/** Reads what {@link publicConfigJson} wrote; a model that is made from scratch has the place of its tokenizer. */
export function readPublicConfig(json: string): RunConfig {
  const { model, ...rest } = JSON.parse(json) as Record<string, unknown> & { model: Record<string, unknown> };
  const { tokenizer: _, ...pretrained } = model;
  return resolveRunConfig({ ...rest, model: "path" in model ? pretrained : model });
}
