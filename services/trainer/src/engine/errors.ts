/** Errors of an engine, as its caller sees them. */
import { RetryableError, TerminalError } from "@hone/core";

/** The engine refused a call; `code` is that of the error inside the engine. */
export class EngineCallError extends TerminalError {}

/** The engine's thread ended; a new engine can load the last saved state. */
export class EngineLostError extends RetryableError {
  constructor(reason: string, options?: ErrorOptions) {
    super("ENGINE_LOST", `the thread of the training engine has ended: ${reason}`, options);
  }
}
