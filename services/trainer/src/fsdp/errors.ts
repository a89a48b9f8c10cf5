/** Errors of the engine on PyTorch workers, as its caller sees them. */
import { TerminalError } from "@hone/core";

/**
 * The group of workers ended, did not start, or was too slow to answer. A new group goes on from the last commit; not a
 * passing failure all the same, as a group that cannot hold its model would be started for ever.
 */
export class GroupLostError extends TerminalError {
  /** What the workers said last. */
  readonly output: string;

  constructor(action: string, reason: string, output: string, options?: ErrorOptions) {
    const said = output === "" ? "" : `; its last words: ${output}`;
    super(
      "ENGINE_LOST",
      `Cannot ${action} as the training workers must answer: current value is ${reason}${said}`,
      options,
    );
    this.output = output;
  }
}
