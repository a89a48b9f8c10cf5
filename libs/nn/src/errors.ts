/** Errors in a model's configuration or its weights. They are terminal, because the same folder fails again. */
import { TerminalError } from "@hone/core";

/** A model configuration breaks a rule, or names an architecture that Hone does not support. */
export class ModelSpecError extends TerminalError {
  /** The field that breaks a rule. */
  readonly field: string;

  constructor(field: string, rule: string, current: unknown) {
    super(
      "MODEL_SPEC",
      `Cannot build a model with ${field} = ${JSON.stringify(current)}; Hone requires that ${rule}`,
    );
    this.field = field;
  }
}
