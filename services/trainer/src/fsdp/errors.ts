/** Errors of the engine on PyTorch workers, as its caller sees them. */
import { TerminalError } from "@hone/core";

/**
 * The group of workers ended, did not start, or was too slow to answer. A new group goes on from the last commit. The error
 * does not count as a passing failure, because a group that cannot hold its model would then be started for ever.
 */
export class GroupLostError extends TerminalError {
  /** The last lines that the workers printed. */
  readonly output: string;

  constructor(action: string, reason: string, output: string, options?: ErrorOptions) {
    const said = output === "" ? "" : `; its last output: ${output}`;
    super("ENGINE_LOST", `the training workers cannot ${action}: ${reason}${said}`, options);
    this.output = output;
  }
}
