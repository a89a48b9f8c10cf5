/** Errors of reading checkpoints. They are terminal, as the same input fails again. */
import { TerminalError } from "@hone/core";

/** A checkpoint folder or file is not what it should be. */
export class CheckpointError extends TerminalError {
  readonly path: string;

  constructor(path: string, rule: string, current: string, options?: ErrorOptions) {
    super("CHECKPOINT", `Cannot read ${path}: expected that ${rule}, but found ${current}`, options);
    this.path = path;
  }
}
