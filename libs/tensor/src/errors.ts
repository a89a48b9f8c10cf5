/** Errors of building, differentiating or running a graph. All are terminal, because the same graph fails again. */
import { TerminalError } from "@hone/core";

/** Shapes, types or attributes that the definition of an operator does not allow. */
export class ShapeError extends TerminalError {
  readonly operator: string;

  constructor(operator: string, rule: string, current: string) {
    super("TENSOR_SHAPE", `${operator} cannot be applied to ${current}; it requires that ${rule}`);
    this.operator = operator;
  }
}

/** The graph is wrong: a name is taken, a tensor belongs to another graph, or a gradient does not exist. */
export class GraphError extends TerminalError {
  constructor(action: string, rule: string, current: string) {
    super("TENSOR_GRAPH", `Cannot ${action}: it requires that ${rule}, but found ${current}`);
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
