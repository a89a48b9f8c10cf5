/** Errors of reading checkpoints. They are terminal, because the same input fails again. */
import { TerminalError } from "@hone/core";

/** A checkpoint folder or file is missing or invalid. */
export class CheckpointError extends TerminalError {
  readonly path: string;

  /** @param problem a sentence that says what is wrong, with the value, and what is allowed. */
  constructor(path: string, problem: string, options?: ErrorOptions) {
    super("CHECKPOINT", `Cannot read ${path}: ${problem}`, options);
    this.path = path;
  }
}

/** @returns the first characters of a file's text, in quotes, for a message. */
export function quoteStart(text: string): string {
  return JSON.stringify(text.slice(0, 40));
}
