/**
 * `hone start`, `hone run` and `hone eval`: submits a run file to a stack, follows the run, and prints how it ended.
 *
 * If the same file has an unfinished run, which a stopped stack left, that run continues and no new one is made. A stack that
 * this command started stops with it. A stack that was up before is not stopped, and neither is the run in it.
 */

import { basename, dirname, isAbsolute, join } from "node:path";
import { otherModels } from "@hone/config";
import { raceAbortable } from "@hone/core";
import type { Bus } from "@hone/messaging";
import { RunFailedError } from "../errors.ts";
import { allowModelFolders, shownPath } from "../project.ts";
import { Interrupted, type Session } from "../session.ts";
import { pageLink } from "../stack/secrets/http-token.ts";
import { connectTo, useStack } from "../stack/use-stack.ts";
import { followFile, requireCompleted } from "./follow-file.ts";
import { type LoadedRun, loadRunFile } from "./load-run-file.ts";
import { RunPrinter } from "./run-printer.ts";

export interface RunOnStackOptions {
  readonly file: string;
  /** Keeps the stack that this command started, and so its page, up until Ctrl-C. */
  readonly isKept: boolean;
  /** Runs the services of a stack that this command starts in this process. @default false */
  readonly isInProcess?: boolean;
}

/**
 * Trains the run of a run file and prints its progress.
 * @returns the exit code.
 * @throws {RunFailedError} when the run is refused, fails or is cancelled.
 */
export async function runOnStack(session: Session, options: RunOnStackOptions): Promise<number> {
  const { project } = session;
  // Read before anything is started, so that a wrong file costs no time and leaves no traces.
  const loaded = await loadRunFile(options.file, project.folder);
  await followOnStack(session, loaded, {
    ...options,
    onEnded: (printer) => {
      const { checkpoint } = printer.view.ended ?? {};
      printer.end(checkpoint ? shownPath(join(project.state, checkpoint)) : undefined);
    },
  });
  return 0;
}

export interface FollowOnStackOptions extends RunOnStackOptions {
  /** Prints the result, however the run ended. Called before a stack that this command started is stopped. */
  readonly onEnded: (printer: RunPrinter, bus: Bus) => Promise<void> | void;
}

/**
 * Submits a run, unless the same file has an unfinished one, and follows it to its end.
 * @throws {RunFailedError} when the run is refused, fails or is cancelled.
 */
export async function followOnStack(
  session: Session,
  loaded: LoadedRun,
  options: FollowOnStackOptions,
): Promise<void> {
  const { terminal, signal } = session;
  // A user may read the model that their file names. A stack that is up already keeps the folders that it was started with.
  const { model } = loaded.config;
  const others = otherModels(loaded.config).map(({ place }) => place);
  const places = "path" in model ? [model, ...others] : others;
  for (const { path } of places) if (isAbsolute(path)) allowModelFolders(foldersOf(path));
  await using stack = await useStack(session, { isInProcess: options.isInProcess === true });
  const bus = await connectTo(stack, "run", signal);
  /** Whether the stack stays up for the run's page. There is none of a run that was refused. */
  let isKept = false;
  /** Why the run did not complete; thrown once its page is no longer needed. */
  let failure: RunFailedError | undefined;
  try {
    const following = new AbortController();
    void stack.failed.then((error) => following.abort(error)); // never rejects
    const printer = new RunPrinter(terminal);
    const followSignal = AbortSignal.any([signal, following.signal]);
    const origin = ` of ${shownPath(options.file)}`;
    const outcome = await followFile(bus, loaded, {
      origin,
      printer,
      terminal,
      signal: followSignal,
    }).finally(() => printer.close());
    isKept = stack.isOwn && options.isKept && outcome.kind === "ended";
    if (outcome.kind === "ended") await options.onEnded(printer, bus);
    const resume = `hone resume ${printer.view.runId}`;
    requireCompleted(outcome, printer, {
      hint: ` (page ${pageLink(stack)})`,
      resumeHint: stack.isOwn ? `hone up, and then ${resume}` : resume,
    });
  } catch (error) {
    if (error instanceof Interrupted) printInterrupted(session, stack.isOwn, options.file);
    if (!(error instanceof RunFailedError && isKept)) throw error;
    failure = error;
  } finally {
    await bus.close();
  }
  if (!isKept) return;
  if (failure !== undefined) terminal.line(`\n${terminal.style("red", failure.message)}`);
  terminal.line(`\nthe page stays up at ${terminal.style("cyan", pageLink(stack))}; Ctrl-C stops the stack`);
  await raceAbortable(stack.failed, signal).then(
    (error) => {
      throw error;
    },
    () => undefined, // Ctrl-C is the expected end
  );
  if (failure !== undefined) throw failure;
}

/** A model's folder. For one in the hub's cache also the repository's folder, which the model's files are links into. */
function foldersOf(folder: string): string[] {
  const repository = dirname(dirname(folder));
  return basename(repository).startsWith("models--") ? [folder, repository] : [folder];
}

function printInterrupted({ terminal, project }: Session, isOwn: boolean, file: string): void {
  terminal.live("");
  terminal.line(
    isOwn
      ? `the run is unfinished; running ${shownPath(file)} again continues it`
      : `the run continues in the stack of ${project.folder}; hone status shows it`,
  );
}
