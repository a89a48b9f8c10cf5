/**
 * Submits a run file and follows the run, for `hone run`, `hone eval` and `hone submit`.
 *
 * U1: if the same file has an unfinished run, that run is followed and no new one is made; a trainer continues it by itself.
 * U2: if the unfinished run of this name comes from a different file, the differences are reported and nothing is submitted.
 */

import {
  ConfigError,
  type RunChange,
  type RunConfig,
  resolveRunConfig,
  runChanges,
  tokenizerDigest,
} from "@hone/config";
import type { Bus } from "@hone/messaging";
import { RunPhase, type RunState } from "@hone/proto-gen/run";
import { reasonLine } from "@hone/rl";
import { RunFailedError, UsageError } from "../errors.ts";
import type { Terminal } from "../terminal.ts";
import {
  followRequest,
  followRun,
  isEnded,
  type RequestOutcome,
  runStates,
  submitRun,
} from "./follow-run.ts";
import { type LoadedRun, problemLines } from "./load-run-file.ts";
import type { RunPrinter } from "./run-printer.ts";

export interface FollowFileOptions {
  /** Printed after the run's id when it begins, such as ` of run.yaml`. */
  readonly origin: string;
  readonly printer: RunPrinter;
  readonly terminal: Terminal;
  readonly signal: AbortSignal;
}

/** Most characters of a value that is shown. */
const MAX_VALUE = 80;
/** Most characters of the reason why a run ended. */
const MAX_REASON = 1_000;

/**
 * Submits a run file, unless it has an unfinished run, and follows the run to its end.
 * @throws {UsageError} when the unfinished run of this name comes from a different file (U2).
 */
export async function followFile(
  bus: Bus,
  loaded: LoadedRun,
  options: FollowFileOptions,
): Promise<RequestOutcome> {
  const { origin, printer, terminal, signal } = options;
  const unfinished = await findUnfinished(bus, loaded.name);
  if (unfinished === undefined) {
    const request = await submitRun(bus, loaded.name, loaded.configJson, signal);
    terminal.line(`\nrun ${terminal.style("bold", request.runId)}${origin}`);
    return followRequest(bus, request, printer.followOptions(signal));
  }
  const changes = changesSince(unfinished, loaded.config);
  if (changes.some(({ matters }) => matters)) throw differentFileError(unfinished.runId, changes);
  terminal.line(
    `\nrun ${terminal.style("bold", unfinished.runId)} of this file is unfinished, and continues`,
  );
  for (const { key, before, after } of changes) {
    terminal.line(`  with ${key} ${shown(before)}, as it was submitted; the file now says ${shown(after)}`);
  }
  return followRun(bus, unfinished.runId, 1, printer.followOptions(signal), unfinished.resumption);
}

/**
 * @param hint is printed after the reason, such as the address of the run's page.
 * @param resumeHint the command that resumes a failed run.
 * @throws {RunFailedError} unless the run completed.
 */
export function requireCompleted(
  outcome: RequestOutcome,
  { view }: RunPrinter,
  { hint = "", resumeHint = "" }: { readonly hint?: string; readonly resumeHint?: string } = {},
): void {
  if (outcome.kind === "refused") {
    const lines = problemLines(outcome.problems).map((line) => `  ${line}`);
    throw new RunFailedError(`the run was refused:\n${lines.join("\n")}`);
  }
  const { ended } = view;
  if (ended?.phase === RunPhase.COMPLETED) return;
  const reason = reasonLine(ended?.reason || "no reason was given", MAX_REASON);
  if (ended?.phase === RunPhase.CANCELLED)
    throw new RunFailedError(`the run was cancelled: ${reason}${hint}`);
  const next =
    resumeHint === ""
      ? ""
      : `\nOnce the cause is fixed, this continues the run from its last version: ${resumeHint}`;
  throw new RunFailedError(`the run failed: ${reason}${hint}${next}`);
}

/** The keys whose values differ between the run file and the file that the run was made from, in order. */
export function changesSince(
  state: Pick<RunState, "configJson" | "tokenizerDigest">,
  now: RunConfig,
): RunChange[] {
  const then = storedRun(state);
  if (then === undefined) return [{ key: "", before: undefined, after: undefined, matters: true }];
  const model =
    "path" in now.model
      ? now.model
      : { init: { ...now.model.init, tokenizer: digestIn(now.model.init.tokenizer) } };
  return runChanges(then, { ...now, model });
}

/** The unfinished run of this name, of which there is at most one (U1). */
async function findUnfinished(bus: Bus, name: string): Promise<RunState | undefined> {
  const states = await runStates(bus);
  return states.find(({ runId, phase }) => !isEnded(phase) && runId.replace(/-\d+$/, "") === name);
}

/**
 * The run file in a run's state, with the digest of the tokenizer in place of its path.
 * @returns undefined if it cannot be read, for example because an earlier version of Hone wrote it.
 */
function storedRun({
  configJson,
  tokenizerDigest: digest,
}: Pick<RunState, "configJson" | "tokenizerDigest">): unknown {
  try {
    const { model, ...run } = JSON.parse(configJson) as { model: Record<string, unknown> };
    const { tokenizer: _, ...pretrained } = model;
    // A file that an earlier version stored has no values for newer keys, so the defaults are filled in.
    const stored = resolveRunConfig({ ...run, model: pretrained });
    return "path" in stored.model
      ? stored
      : { ...stored, model: { init: { ...stored.model.init, tokenizer: digest } } };
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError || error instanceof ConfigError)
      return undefined;
    throw error;
  }
}

function digestIn(tokenizer: string | { readonly files: Readonly<Record<string, string>> }): string {
  return typeof tokenizer === "string" ? tokenizer : tokenizerDigest(tokenizer.files);
}

/** U2 */
function differentFileError(runId: string, changes: readonly RunChange[]): UsageError {
  const lines = changes
    .filter(({ matters }) => matters)
    .map(({ key, before, after }) =>
      key === ""
        ? "  this version of Hone cannot read the file of the unfinished run"
        : `  ${key} was ${shown(before)} and is ${shown(after)}`,
    );
  return new UsageError(
    `the unfinished run ${runId} of this name was made from a different file, so it is not continued:\n${lines.join("\n")}\nTo continue it, put the old values back; otherwise end it (hone cancel ${runId}) or give this run another name`,
  );
}

function shown(value: unknown): string {
  if (value === undefined) return "absent";
  const json = JSON.stringify(value);
  return reasonLine(json.length <= MAX_VALUE ? json : `${json.slice(0, MAX_VALUE)}…`);
}
