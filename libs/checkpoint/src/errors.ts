/** Errors of reading checkpoints. They are terminal, because the same input fails again. */
import { TerminalError } from "@hone/core";

/** A checkpoint folder or file is missing or invalid. */
export class CheckpointError extends TerminalError {
  readonly path: string;

  constructor(path: string, rule: string, current: string, options?: ErrorOptions) {
    super("CHECKPOINT", `Cannot read ${path}: expected that ${rule}, but found ${current}`, options);
    this.path = path;
  }
}
