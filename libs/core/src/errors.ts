/**
 * The root of Hone's errors.
 *
 * Every package derives its own errors from {@link TerminalError} or {@link RetryableError}, so that a caller
 * decides by type, never by text. `code` is stable and meant for programs, the message for people. A message has
 * the form `Cannot <action> as <rule>: current value is <value>`.
 *
 * Adding one: derive it in the `errors.ts` of the package that throws it, give it a `code`, and keep what a
 * handler needs as readonly fields.
 */

/** Root class: an error with a stable code and, where there is one, a cause. */
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

/** The same call may succeed later: the other side was away, busy or restarting. */
export class RetryableError extends HoneError {}

/** A value from outside breaks a stated rule. Carries where the value stood and what would have been allowed. */
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

/** A wait ran past its deadline. */
export class DeadlineError extends RetryableError {
  readonly waitedForMs: number;

  constructor(what: string, waitedForMs: number) {
    super(
      "DEADLINE",
      `Cannot wait longer for ${what} as its deadline passed: current value is ${waitedForMs} ms`,
    );
    this.waitedForMs = waitedForMs;
  }
}

/** One line for logs and replies: the message with those of its causes. */
export function describeError(error: unknown): string {
  const parts: string[] = [];
  for (let current = error; current !== undefined && current !== null && parts.length < 5; ) {
    parts.push(current instanceof Error ? current.message || current.name : String(current));
    current = current instanceof Error ? current.cause : undefined;
  }
  return parts.join(": ");
}

/** Codes of the operating system for a disk or a quota without room. */
const FULL_CODES = new Set(["ENOSPC", "EDQUOT"]);

/** Whether a failure, or one of its causes, says that a disk or a quota is full: it may succeed when somebody makes room. */
export function isDiskFull(error: unknown): boolean {
  for (let current = error; current instanceof Error; current = current.cause) {
    if ("code" in current && FULL_CODES.has(String(current.code))) return true;
  }
  return false;
}

/** Makes the compiler prove that a `switch` over a union is complete. */
export function unreachable(value: never): never {
  throw new TerminalError(
    "UNREACHABLE",
    `Cannot handle a value as no case names it: current value is ${String(value)}`,
  );
}
