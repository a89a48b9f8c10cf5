/** The graph of a loss that is given as an expression (libs/rl/src/algorithm/loss/expression.ts). */

import { buildExpression, type Expression, type ExpressionBackend, type ExpressionInput } from "@hone/rl";
import {
  Abs,
  Add,
  Cast,
  Div,
  Exp,
  Greater,
  Log,
  Max,
  Min,
  Mul,
  Neg,
  Sigmoid,
  StopGradient,
  Sub,
  type Tensor,
} from "@hone/tensor";

/** @param inputs [E] each, by name. @returns [E] */
export function expressionGraph(
  expression: Expression,
  inputs: Readonly<Partial<Record<ExpressionInput, Tensor>>>,
): Tensor {
  const { graph, dtype } = inputs.logprob!;
  const tensor = (x: Tensor | number): Tensor => (typeof x === "number" ? graph.scalar(dtype, x) : x);
  const unary = (operation: (x: Tensor) => Tensor) => (a: Tensor | number) => operation(tensor(a));
  const binary =
    (operation: (a: Tensor, b: Tensor | number) => Tensor) => (a: Tensor | number, b: Tensor | number) =>
      operation(tensor(a), b);
  const operations = {
    add: binary(Add),
    subtract: binary(Sub),
    multiply: binary(Mul),
    divide: binary(Div),
    min: binary(Min),
    max: binary(Max),
    greater: binary((a, b) => Cast(Greater(a, b), a.dtype)),
    negate: unary(Neg),
    exp: unary(Exp),
    log: unary(Log),
    abs: unary(Abs),
    sigmoid: unary(Sigmoid),
    detach: unary(StopGradient),
  } as ExpressionBackend<Tensor>["operations"];
  return tensor(buildExpression(expression, { input: (name) => inputs[name]!, operations }));
}
