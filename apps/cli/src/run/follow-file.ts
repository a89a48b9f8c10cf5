/**
 * A run file on its way: `hone run`, `hone eval` and `hone submit` send it, or go on with its unfinished run.
 *
 * U1: an unfinished run of the very same file goes on instead of being made anew: a trainer takes it up as soon as it runs.
 * U2: a run of the file's name that another file made is not continued: what differs is named, and nothing is sent.
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
  /** Named when the run begins; such as ` of run.yaml`. */
  readonly origin: string;
  readonly printer: RunPrinter;
  readonly terminal: Terminal;
  readonly signal: AbortSignal;
}

/** Characters of a value that is shown. */
const MAX_VALUE = 80;
/** Characters of why a run ended. */
const MAX_REASON = 1_000;

/**
 * Sends a run file, or goes on with its unfinished run, and follows it to its end.
 * @throws {UsageError} where the unfinished run of the name is another file's (U2).
 */
export async function followFile(
  bus: Bus,
  loaded: LoadedRun,
  options: FollowFileOptions,
): Promise<RequestOutcome> {
  const { origin, printer, terminal, signal } = options;
  const unfinished = await findUnfinished(bus, loaded.name);
  if (unfinished === undefined) {
    const request = await submitRun(bus, loaded.name, loaded.text, signal);
    terminal.line(`\nrun ${terminal.style("bold", request.runId)}${origin}`);
    return followRequest(bus, request, printer.followOptions(signal));
  }
  const changes = changesSince(unfinished, loaded.config);
  if (changes.some(({ matters }) => matters)) throw notTheSame(unfinished.runId, changes);
  terminal.line(`\nrun ${terminal.style("bold", unfinished.runId)} of this file is unfinished: it goes on`);
  for (const { key, before, after } of changes) {
    terminal.line(`  with ${key} ${shown(before)}, as it was sent; the file says ${shown(after)} now`);
  }
  return followRun(bus, unfinished.runId, 1, printer.followOptions(signal), unfinished.resumption);
}

/**
 * @param hint follows the reason, such as where its page is.
 * @param resumeHint how a failed run is resumed.
 * @throws {RunFailedError} unless the run completed.
 */
export function requireCompleted(
  outcome: RequestOutcome,
  { view }: RunPrinter,
  { hint = "", resumeHint = "" }: { readonly hint?: string; readonly resumeHint?: string } = {},
): void {
  if (outcome.kind === "refused") {
    const lines = problemLines(outcome.problems).map((line) => `  ${line}`);
    throw new RunFailedError(`The run was refused:\n${lines.join("\n")}`);
  }
  const { ended } = view;
  if (ended?.phase === RunPhase.COMPLETED) return;
  const reason = reasonLine(ended?.reason || "no reason was given", MAX_REASON);
  if (ended?.phase === RunPhase.CANCELLED)
    throw new RunFailedError(`The run was cancelled: ${reason}${hint}`);
  const next =
    resumeHint === "" ? "" : `\nOnce the cause is mended, it goes on from its last version: ${resumeHint}`;
  throw new RunFailedError(`The run failed: ${reason}${hint}${next}`);
}

/** What the file says otherwise than the one that the run was made from, in order of the keys. */
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

/** U1. Of a name one run at a time is unfinished. */
async function findUnfinished(bus: Bus, name: string): Promise<RunState | undefined> {
  const states = await runStates(bus);
  return states.find(({ runId, phase }) => !isEnded(phase) && runId.replace(/-\d+$/, "") === name);
}

/**
 * The run file as its state shows it, with a tokenizer by its digest; its place is the trainer's affair.
 * @returns undefined where it cannot be read, as one of an earlier version.
 */
function storedRun({
  configJson,
  tokenizerDigest: digest,
}: Pick<RunState, "configJson" | "tokenizerDigest">): unknown {
  try {
    const { model, ...run } = JSON.parse(configJson) as { model: Record<string, unknown> };
    const { tokenizer: _, ...pretrained } = model;
    // What was sent by an earlier version has no value for keys that came since.
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
function notTheSame(runId: string, changes: readonly RunChange[]): UsageError {
  const lines = changes
    .filter(({ matters }) => matters)
    .map(({ key, before, after }) =>
      key === ""
        ? "  its own file cannot be read by this version of Hone"
        : `  ${key} was ${shown(before)} and is ${shown(after)}`,
    );
  return new UsageError(
    `Run ${runId} of this name is unfinished and was made from another file, so it is not continued:\n${lines.join("\n")}\nPut the old values back to go on with it, end it (hone cancel ${runId}), or give this run another name`,
  );
}

function shown(value: unknown): string {
  if (value === undefined) return "absent";
  const json = JSON.stringify(value);
  return reasonLine(json.length <= MAX_VALUE ? json : `${json.slice(0, MAX_VALUE)}…`);
}
