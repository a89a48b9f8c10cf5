/** Errors in a model's configuration or its weights. They are terminal, because the same folder fails again. */
import { TerminalError } from "@hone/core";

/** A model configuration breaks a rule, or names an architecture that Hone does not support. */
export class ModelSpecError extends TerminalError {
  /** The field that breaks a rule. */
  readonly field: string;

  /** @param problem a sentence that names the field and its value, and says what is allowed. */
  constructor(field: string, problem: string) {
    super("MODEL_SPEC", `Cannot build the model: ${problem}`);
    this.field = field;
  }
}

/** Longer values are cut in messages. */
const MAX_SHOWN_CHARACTERS = 200;

/** @returns a value of a configuration as JSON, for a message. */
export function show(value: unknown): string {
  const text = JSON.stringify(value) ?? "absent";
  return text.length > MAX_SHOWN_CHARACTERS ? `${text.slice(0, MAX_SHOWN_CHARACTERS)}…` : text;
}
