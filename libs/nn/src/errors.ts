/** What can be wrong with a model's description or its weights. Terminal: the same folder fails again. */
import { TerminalError } from "@hone/core";

/** A model configuration breaks a rule, or names an architecture that Hone does not build. */
export class ModelSpecError extends TerminalError {
  /** The offending field. */
  readonly field: string;

  constructor(field: string, rule: string, current: unknown) {
    super(
      "MODEL_SPEC",
      `Cannot build a model with ${field} = ${JSON.stringify(current)}; Hone requires that ${rule}`,
    );
    this.field = field;
  }
}
