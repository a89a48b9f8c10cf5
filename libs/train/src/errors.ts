/** Errors of training. They are terminal, because the same input fails again. */
import { TerminalError } from "@hone/core";

/** Samples, loss constants or options of a training step break a rule. */
export class TrainingInputError extends TerminalError {
  constructor(message: string) {
    super("TRAINING_INPUT", message);
  }
}

/** A step produced numbers that are not finite; weights and optimizer are unchanged. */
export class NonFiniteError extends TerminalError {
  readonly quantity: string;

  constructor(quantity: string, value: number) {
    super("NON_FINITE", `the ${quantity} is ${value}, so the weights were not updated`);
    this.quantity = quantity;
  }
}

/** A forward-backward pass failed in its thread. */
export class MicrobatchError extends TerminalError {
  constructor(reason: string) {
    super("MICROBATCH", `a forward-backward pass failed: ${reason}`);
  }
}

/** An update of the weights failed in one of its threads; they may be partly updated. */
export class UpdateError extends TerminalError {
  constructor(reason: string) {
    super("UPDATE", `an update of the weights failed: ${reason}`);
  }
}
