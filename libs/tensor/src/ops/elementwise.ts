/** Element-wise operators; two-input ones broadcast as NumPy does. Functions are named as the ONNX operators. */
import { DTYPES, type DType, isFloating } from "../dtype.ts";
import { ShapeError } from "../errors.ts";
import type { Graph, OwnGradient, Tensor } from "../graph.ts";
import { checkBroadcastShape, formatShape, sameShape } from "../shape.ts";

/** A tensor, or a number that becomes a scalar constant of the other operand's type. */
export type Operand = Tensor | number;

type Unary =
  | "Neg"
  | "Abs"
  | "Sign"
  | "Floor"
  | "Exp"
  | "Log"
  | "Sqrt"
  | "Reciprocal"
  | "Sigmoid"
  | "Cos"
  | "Sin";
type Arithmetic = "Add" | "Sub" | "Mul" | "Div" | "Min" | "Max";
type Comparison = "Equal" | "Less" | "LessOrEqual" | "Greater" | "GreaterOrEqual";

/** -x */
export const Neg = (x: Tensor): Tensor => unary("Neg", x);
/** |x| */
export const Abs = (x: Tensor): Tensor => unary("Abs", x);
/** -1, 0 or 1 */
export const Sign = (x: Tensor): Tensor => unary("Sign", x);
/** The largest whole number that is not above x. */
export const Floor = (x: Tensor): Tensor => unary("Floor", x);
/** e^x */
export const Exp = (x: Tensor): Tensor => unary("Exp", x);
/** Natural logarithm. */
export const Log = (x: Tensor): Tensor => unary("Log", x);
/** Square root. */
export const Sqrt = (x: Tensor): Tensor => unary("Sqrt", x);
/** 1 / x */
export const Reciprocal = (x: Tensor): Tensor => unary("Reciprocal", x);
/** 1 / (1 + e^-x) */
export const Sigmoid = (x: Tensor): Tensor => unary("Sigmoid", x);
/** Cosine of radians. */
export const Cos = (x: Tensor): Tensor => unary("Cos", x);
/** Sine of radians. */
export const Sin = (x: Tensor): Tensor => unary("Sin", x);

/** a + b */
export const Add = (a: Operand, b: Operand): Tensor => arithmetic("Add", a, b);
/** a - b */
export const Sub = (a: Operand, b: Operand): Tensor => arithmetic("Sub", a, b);
/** a * b */
export const Mul = (a: Operand, b: Operand): Tensor => arithmetic("Mul", a, b);
/** a / b */
export const Div = (a: Operand, b: Operand): Tensor => arithmetic("Div", a, b);
/** The smaller of the two. */
export const Min = (a: Operand, b: Operand): Tensor => arithmetic("Min", a, b);
/** The larger of the two. */
export const Max = (a: Operand, b: Operand): Tensor => arithmetic("Max", a, b);

/** a == b */
export const Equal = (a: Operand, b: Operand): Tensor => comparison("Equal", a, b);
/** a < b */
export const Less = (a: Operand, b: Operand): Tensor => comparison("Less", a, b);
/** a <= b */
export const LessOrEqual = (a: Operand, b: Operand): Tensor => comparison("LessOrEqual", a, b);
/** a > b */
export const Greater = (a: Operand, b: Operand): Tensor => comparison("Greater", a, b);
/** a >= b */
export const GreaterOrEqual = (a: Operand, b: Operand): Tensor => comparison("GreaterOrEqual", a, b);

/** True where both are true. */
export function And(a: Tensor, b: Tensor): Tensor {
  requireType("And", a, "bool");
  requireType("And", b, "bool");
  const shape = checkBroadcastShape("And", a.shape, b.shape);
  return a.graph.emit("And", [a, b], {}, [{ dtype: "bool", shape }]).outputs[0]!;
}

/** The same values under another name, so that an output can have a name of its own. */
export function Identity(x: Tensor): Tensor {
  return x.graph.emit("Identity", [x], { stopsGradient: false }, [x]).outputs[0]!;
}

/** The same values, which gradients take for a constant. */
export function StopGradient(x: Tensor): Tensor {
  return x.graph.emit("Identity", [x], { stopsGradient: true }, [x]).outputs[0]!;
}

/**
 * The values of `x`, with gradients that the caller computes. For results that cannot be differentiated, as they are rounded, and for
 * gradients that are to be computed otherwise than the result.
 */
export function WithGradient(x: Tensor, gradient: OwnGradient): Tensor {
  const result = Identity(x);
  x.graph.ownGradients.set(result, gradient);
  return result;
}

/**
 * The values of `x` with the gradient of `exact`, of which `x` is a rounded form: the straight-through estimator
 * (https://arxiv.org/abs/1308.3432). `exact` is not computed unless something else needs it.
 */
export function StraightThrough(x: Tensor, exact: Tensor): Tensor {
  if (!sameShape(x.shape, exact.shape) || x.dtype !== exact.dtype) {
    const found = `${x.dtype}${formatShape(x.shape)} and ${exact.dtype}${formatShape(exact.shape)}`;
    throw new ShapeError(
      "StraightThrough",
      `both tensors must have the same type and shape, but are ${found}`,
    );
  }
  return WithGradient(x, { inputs: [exact], gradientsOf: (gradient) => [gradient] });
}

/** Converts the elements to another type; a tensor that already has this type is returned unchanged. */
export function Cast(x: Tensor, dtype: DType): Tensor {
  if (x.dtype === dtype) return x;
  return x.graph.emit("Cast", [x], { to: DTYPES[dtype].code }, [{ dtype, shape: x.shape }]).outputs[0]!;
}

/** Limits the elements to [low, high]. */
export function Clip(x: Tensor, low: number, high: number): Tensor {
  if (!(low <= high)) throw new ShapeError("Clip", `the lower limit ${low} is above the upper limit ${high}`);
  const bounds = [x.graph.scalar(x.dtype, low), x.graph.scalar(x.dtype, high)];
  return x.graph.emit("Clip", [x, ...bounds], {}, [x]).outputs[0]!;
}

/** `condition ? a : b` for every element. */
export function Where(condition: Tensor, a: Operand, b: Operand): Tensor {
  requireType("Where", condition, "bool");
  const { graph } = condition;
  const dtype = typeof a === "number" ? (typeof b === "number" ? "float32" : b.dtype) : a.dtype;
  const whenTrue = typeof a === "number" ? graph.scalar(dtype, a) : a;
  const whenFalse = typeof b === "number" ? graph.scalar(dtype, b) : b;
  requireType("Where", whenFalse, dtype);
  const branches = checkBroadcastShape("Where", whenTrue.shape, whenFalse.shape);
  const shape = checkBroadcastShape("Where", condition.shape, branches);
  return graph.emit("Where", [condition, whenTrue, whenFalse], {}, [{ dtype, shape }]).outputs[0]!;
}

function unary(primitive: Unary, x: Tensor): Tensor {
  if (!isFloating(x.dtype) && primitive !== "Neg") {
    throw new ShapeError(primitive, `the input must be a floating-point tensor, but is ${x.dtype}`);
  }
  return x.graph.emit(primitive, [x], {}, [x]).outputs[0]!;
}

function arithmetic(primitive: Arithmetic, a: Operand, b: Operand): Tensor {
  const { graph, left, right } = operands(primitive, a, b);
  const shape = checkBroadcastShape(primitive, left.shape, right.shape);
  return graph.emit(primitive, [left, right], {}, [{ dtype: left.dtype, shape }]).outputs[0]!;
}

function comparison(primitive: Comparison, a: Operand, b: Operand): Tensor {
  const { graph, left, right } = operands(primitive, a, b);
  const shape = checkBroadcastShape(primitive, left.shape, right.shape);
  return graph.emit(primitive, [left, right], {}, [{ dtype: "bool", shape }]).outputs[0]!;
}

function operands(primitive: string, a: Operand, b: Operand): { graph: Graph; left: Tensor; right: Tensor } {
  const known = typeof a === "number" ? b : a;
  if (typeof known === "number") {
    throw new ShapeError(primitive, `one operand must be a tensor, but both are numbers (${a} and ${b})`);
  }
  const { graph, dtype } = known;
  const left = typeof a === "number" ? graph.scalar(dtype, a) : a;
  const right = typeof b === "number" ? graph.scalar(dtype, b) : b;
  if (left.dtype !== right.dtype) {
    const found = `${left.dtype} and ${right.dtype}`;
    throw new ShapeError(primitive, `the operands must have the same type, but are ${found}`);
  }
  return { graph, left, right };
}

function requireType(primitive: string, x: Tensor, dtype: DType): void {
  if (x.dtype !== dtype) throw new ShapeError(primitive, `the input must be ${dtype}, but is ${x.dtype}`);
}
