/** What can go wrong in training. Terminal: the same input fails again. */
import { TerminalError } from "@hone/core";

/** Samples, loss constants or options of a training step break a rule. */
export class TrainingInputError extends TerminalError {
  constructor(action: string, rule: string, current: string) {
    super("TRAINING_INPUT", `Cannot ${action} as ${rule}: current value is ${current}`);
  }
}

/** A step produced numbers that are not finite; weights and optimizer were left as they were. */
export class NonFiniteError extends TerminalError {
  readonly quantity: string;

  constructor(quantity: string, value: number) {
    super("NON_FINITE", `Cannot update weights as the ${quantity} must be finite: current value is ${value}`);
    this.quantity = quantity;
  }
}

/** A forward-backward pass failed in its thread. */
export class MicrobatchError extends TerminalError {
  constructor(rule: string, current: string) {
    super("MICROBATCH", `Cannot run a microbatch as ${rule}: current value is ${current}`);
  }
}

/** An update of the weights failed in one of its threads; they may be partly updated. */
export class UpdateError extends TerminalError {
  constructor(rule: string, current: string) {
    super("UPDATE", `Cannot update weights as ${rule}: current value is ${current}`);
  }
}
