/**
 * `hone start`, `hone run` and `hone eval`: submits a run file to a stack, follows it, and tells how it ended.
 *
 * An unfinished run of the very same file, left by a stack that was ended, goes on instead of being made anew. A stack that
 * this command started ends with it; a stack that ran before is left alone, and so is its run.
 */

import { basename, dirname, isAbsolute, join } from "node:path";
import { raceAbortable } from "@hone/core";
import { allowModelFolders, shownPath } from "../project.ts";
import { Interrupted, type Session } from "../session.ts";
import { pageLink } from "../stack/secrets/http-token.ts";
import { connectTo, useStack } from "../stack/use-stack.ts";
import { followFile, requireCompleted } from "./follow-file.ts";
import { type LoadedRun, loadRunFile } from "./load-run-file.ts";
import { RunPrinter } from "./run-printer.ts";

export interface RunOnStackOptions {
  readonly file: string;
  /** Keeps an own stack, and so its page, until Ctrl-C. */
  readonly isKept: boolean;
  /** Runs the services of an own stack in this process. @default false */
  readonly isInProcess?: boolean;
}

/**
 * Trains what a run file says, and tells it.
 * @returns the exit code.
 * @throws {RunFailedError} when the run is refused, fails or is cancelled.
 */
export async function runOnStack(session: Session, options: RunOnStackOptions): Promise<number> {
  const { project } = session;
  // Before anything is started: a wrong file costs no time and leaves nothing behind.
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
  /** Tells what came of it, however it ended. Called before an own stack ends. */
  readonly onEnded: (printer: RunPrinter) => void;
}

/**
 * Submits a run, or goes on with the unfinished one of the same file, and follows it to its end.
 * @throws {RunFailedError} when the run is refused, fails or is cancelled.
 */
export async function followOnStack(
  session: Session,
  loaded: LoadedRun,
  options: FollowOnStackOptions,
): Promise<void> {
  const { terminal, signal } = session;
  // Who runs a file names its model; a stack that runs already has the folders that it was started with.
  const { model } = loaded.config;
  if ("path" in model && isAbsolute(model.path)) allowModelFolders(foldersOf(model.path));
  await using stack = await useStack(session, { isInProcess: options.isInProcess === true });
  const bus = await connectTo(stack, "run", signal);
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
    if (outcome.kind === "ended") options.onEnded(printer);
    const resume = `hone resume ${printer.view.runId}`;
    requireCompleted(outcome, printer, {
      hint: ` (page ${pageLink(stack)})`,
      resumeHint: stack.isOwn ? `hone up, and then ${resume}` : resume,
    });
  } catch (error) {
    if (error instanceof Interrupted) tellInterrupted(session, stack.isOwn, options.file);
    throw error;
  } finally {
    await bus.close();
  }
  if (!stack.isOwn || !options.isKept) return;
  terminal.line(`\nthe page stays up at ${terminal.style("cyan", pageLink(stack))}; Ctrl-C ends it`);
  await raceAbortable(stack.failed, signal).then(
    (error) => {
      throw error;
    },
    () => undefined, // Ctrl-C is how this is meant to end
  );
}

/** A folder, and where it is one of a hub's cache, that of its repository: the files are links into it. */
function foldersOf(folder: string): string[] {
  const repository = dirname(dirname(folder));
  return basename(repository).startsWith("models--") ? [folder, repository] : [folder];
}

function tellInterrupted({ terminal, project }: Session, isOwn: boolean, file: string): void {
  terminal.live("");
  terminal.line(
    isOwn
      ? `the run is unfinished: the next start of ${shownPath(file)} goes on with it`
      : `the run goes on in the stack of ${project.folder}: see hone status`,
  );
}
