/**
 * The root of Hone's errors.
 *
 * Every package derives its own errors from {@link TerminalError} or {@link RetryableError}, so that a caller
 * decides by type, never by text. `code` is stable and meant for programs, the message is meant for people.
 *
 * A message is one plain sentence that a stranger understands: what failed, the value, and what is allowed or what to do,
 * such as `model.path "./x" does not exist; give a folder or an owner/name of the hub`. It begins with a capital letter or
 * with the name of what is wrong, and has no full stop, as other messages may follow it after a colon.
 *
 * To add an error: derive it in the `errors.ts` of the package that throws it, give it a `code`, and keep what a
 * handler needs as readonly fields.
 */

/** The root class: an error with a stable code and, if known, a cause. */
export class HoneError extends Error {
  /** Stable, in SCREAMING_SNAKE_CASE. */
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

/** Trying again with the same input cannot help. */
export class TerminalError extends HoneError {}

/** The same call may succeed later: the other side was unreachable, busy or restarting. */
export class RetryableError extends HoneError {}

/** A value from outside breaks a rule. The error carries the place of the value and what is allowed there. */
export class InvalidInputError extends TerminalError {
  /** Path of the offending value, such as `rollout.groupSize`; empty for the whole input. */
  readonly path: string;
  /** What is allowed there, in words. */
  readonly allowed: string;

  constructor(message: string, details: { path: string; allowed: string }, options?: ErrorOptions) {
    super("INVALID_INPUT", message, options);
    this.path = details.path;
    this.allowed = details.allowed;
  }
}

/** Something took longer than its deadline. */
export class DeadlineError extends RetryableError {
  readonly waitedForMs: number;

  constructor(what: string, waitedForMs: number) {
    super("DEADLINE", `Waited ${waitedForMs} ms for ${what}, which is the limit, and gave up`);
    this.waitedForMs = waitedForMs;
  }
}

/** @returns one line for logs and replies: the error's message, followed by those of its causes. */
export function describeError(error: unknown): string {
  const parts: string[] = [];
  for (let current = error; current !== undefined && current !== null && parts.length < 5; ) {
    parts.push(current instanceof Error ? current.message || current.name : String(current));
    current = current instanceof Error ? current.cause : undefined;
  }
  return parts.join(": ");
}

/** Codes of the operating system for a full disk or a used-up quota. */
const FULL_CODES = new Set(["ENOSPC", "EDQUOT"]);

/** Whether an error, or one of its causes, says that a disk or a quota is full. The call may succeed once space is freed. */
export function isDiskFull(error: unknown): boolean {
  for (let current = error; current instanceof Error; current = current.cause) {
    if ("code" in current && FULL_CODES.has(String(current.code))) return true;
  }
  return false;
}

/**
 * Codes of the operating system for file operations that it refuses at the moment: no space, no permission, a read-only file
 * system, a disk or file server that fails. Each of these conditions may end without the program doing anything.
 */
const REFUSAL_CODES = new Set([
  ...FULL_CODES,
  "EACCES",
  "EPERM",
  "EROFS",
  "EIO",
  "EREMOTEIO",
  "ENXIO",
  "ENODEV",
  "ESTALE",
  "ENOTCONN",
  "EBUSY",
  "EMFILE",
  "ENFILE",
]);

/** @returns the operating system's code if the error, or one of its causes, is a file operation refused for a reason that may pass. */
export function fileRefusal(error: unknown): string | undefined {
  for (let current = error; current instanceof Error; current = current.cause) {
    if ("code" in current && REFUSAL_CODES.has(String(current.code))) return String(current.code);
  }
  return undefined;
}

/** Called in the default branch of a `switch` over a union, so that the compiler proves that the branch cannot be reached. */
export function unreachable(value: never): never {
  throw new TerminalError("UNREACHABLE", `No case handles the value ${String(value)}`);
}
