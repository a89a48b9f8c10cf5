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

/**
 * Codes of the operating system for files that it refuses at the moment: no room, no right, a file system that is read-only,
 * a disk or a file server that fails. Each may be allowed again without the program's doing.
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

/** The operating system's code where a failure, or one of its causes, is a refusal of files that may pass. */
export function fileRefusal(error: unknown): string | undefined {
  for (let current = error; current instanceof Error; current = current.cause) {
    if ("code" in current && REFUSAL_CODES.has(String(current.code))) return String(current.code);
  }
  return undefined;
}

/** Makes the compiler prove that a `switch` over a union is complete. */
export function unreachable(value: never): never {
  throw new TerminalError(
    "UNREACHABLE",
    `Cannot handle a value as no case names it: current value is ${String(value)}`,
  );
}
