/** Errors of building, differentiating or running a graph. All are terminal, because the same graph fails again. */
import { TerminalError } from "@hone/core";

/** Shapes, types or attributes that the definition of an operator does not allow. */
export class ShapeError extends TerminalError {
  readonly operator: string;

  /** @param problem a sentence that says what the operands must be, and what they are. */
  constructor(operator: string, problem: string) {
    super("TENSOR_SHAPE", `Cannot apply ${operator}: ${problem}`);
    this.operator = operator;
  }
}

/** The graph is wrong: a name is taken, a tensor belongs to another graph, or a gradient does not exist. */
export class GraphError extends TerminalError {
  /** @param problem a sentence that says what is required, and what was found. */
  constructor(action: string, problem: string) {
    super("TENSOR_GRAPH", `Cannot ${action}: ${problem}`);
  }
}

/** onnxruntime rejected the model or a run. */
export class SessionError extends TerminalError {
  constructor(action: string, cause: unknown) {
    const text = cause instanceof Error ? cause.message : String(cause);
    super("TENSOR_SESSION", `Cannot ${action}: onnxruntime refused it (${text})`, {
      cause,
    });
  }
}
