/** What can go wrong while a graph is built, differentiated or run. All are terminal: the same graph fails again. */
import { TerminalError } from "@hone/core";

/** An operator was given shapes, types or attributes that its definition does not allow. */
export class ShapeError extends TerminalError {
  readonly operator: string;

  constructor(operator: string, rule: string, current: string) {
    super("TENSOR_SHAPE", `Cannot apply ${operator} as ${rule}: current value is ${current}`);
    this.operator = operator;
  }
}

/** The graph as a whole is wrong: a name is taken, a tensor is foreign, a gradient does not exist. */
export class GraphError extends TerminalError {
  constructor(action: string, rule: string, current: string) {
    super("TENSOR_GRAPH", `Cannot ${action} as ${rule}: current value is ${current}`);
  }
}

/** onnxruntime refused the model or a run. */
export class SessionError extends TerminalError {
  constructor(action: string, cause: unknown) {
    const text = cause instanceof Error ? cause.message : String(cause);
    super("TENSOR_SESSION", `Cannot ${action} as onnxruntime refused it: current value is ${text}`, {
      cause,
    });
  }
}
