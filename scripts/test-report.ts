/** How a failed test is shown. */

import { inspect } from "node:util";

export interface Failure {
  readonly name: string;
  readonly line: number | undefined;
  readonly error: Error;
}

const MAX_ERROR_LINES = 40;

/** Name and place, then the error with its difference and the part of its stack that lies in this repository. */
export function describeFailure(failure: Failure, path: string): string {
  const place = failure.line === undefined ? path : `${path}:${failure.line}`;
  // node:test wraps what the test threw.
  const thrown = failure.error.cause ?? failure.error;
  const text = thrown instanceof Error ? withShortStack(thrown) : inspect(thrown);
  const lines = [...howItEnded(failure.error), ...text.split("\n")];
  const shown = lines.slice(0, MAX_ERROR_LINES);
  if (lines.length > shown.length) shown.push(`… ${lines.length - shown.length} more lines`);
  return `✖ ${failure.name}  (${place})\n${indent(shown.join("\n"), "  ")}`;
}

/** How the process of a file ended that died before it could report a test, which node:test says beside its error. */
function howItEnded(error: Error): string[] {
  const { signal, exitCode } = error as { readonly signal?: unknown; readonly exitCode?: unknown };
  if (typeof signal === "string") return [`its process was ended by ${signal}`];
  return typeof exitCode === "number" ? [`its process ended with exit code ${exitCode}`] : [];
}

export function indent(text: string, by: string): string {
  return text
    .split("\n")
    .map((line) => `${by}${line}`)
    .join("\n");
}

/** Without the frames of Node itself, which say nothing about the failure. */
function withShortStack(error: Error): string {
  const parts = [error.stack ?? String(error)];
  for (
    let cause = error.cause;
    cause !== undefined;
    cause = cause instanceof Error ? cause.cause : undefined
  ) {
    parts.push(`caused by: ${cause instanceof Error ? (cause.stack ?? cause.message) : inspect(cause)}`);
  }
  return parts
    .join("\n")
    .split("\n")
    .filter((line) => !/^\s+at .*(node:internal|node:async_hooks)/.test(line))
    .join("\n");
}
