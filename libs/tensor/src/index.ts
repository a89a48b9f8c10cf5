/**
 * Symbolic ONNX graphs: element types, shapes, operators with checked shapes, and sessions that run them on
 * onnxruntime.
 *
 *   const g = new Graph("square");
 *   const x = g.input("x", "float32", ["n"]);
 *   g.output("y", Mul(x, x));
 *   const session = await GraphSession.create(g);
 *   const { y } = await session.run({ x: { dtype: "float32", data: Float32Array.of(3), shape: [1] } });
 */

export type { DataByType, DType, TensorData } from "./dtype.ts";
export { DTYPES, isFloating, toData } from "./dtype.ts";
export { type EightBitSpeed, measureEightBits } from "./eight-bit-speed.ts";
export { type EightBitType, exactEightBitType } from "./eight-bit-type.ts";
export { GraphError, SessionError, ShapeError } from "./errors.ts";
export type { GradientSeed } from "./gradients.ts";
export { gradients, gradientsFrom } from "./gradients.ts";
export type { Branch, GraphNode, Initializer, OwnGradient, Tensor, TensorType } from "./graph.ts";
export { Graph } from "./graph.ts";
export { If } from "./ops/control.ts";
export type { Operand } from "./ops/elementwise.ts";
export {
  Abs,
  Add,
  And,
  Cast,
  Clip,
  Cos,
  Div,
  Equal,
  Exp,
  Floor,
  Greater,
  GreaterOrEqual,
  Identity,
  Less,
  LessOrEqual,
  Log,
  Max,
  Min,
  Mul,
  Neg,
  Reciprocal,
  Sigmoid,
  Sign,
  Sin,
  Sqrt,
  StopGradient,
  StraightThrough,
  Sub,
  Where,
  WithGradient,
} from "./ops/elementwise.ts";
export { QuickGelu, RotaryEmbedding, SimplifiedLayerNormalization } from "./ops/fused.ts";
export type { GatherOptions } from "./ops/indexing.ts";
export { Gather, GatherElements, ScatterElements, ScatterND } from "./ops/indexing.ts";
export {
  DequantizeLinear,
  MatMulInteger,
  MatMulIntegerToFloat,
  type Quantized,
  QuantizeLinear,
} from "./ops/integer.ts";
export type { FusedMatMulOptions } from "./ops/linalg.ts";
export { FusedMatMul, Gemm, MatMul } from "./ops/linalg.ts";
export {
  After,
  AfterReserving,
  Concat,
  ExpandLike,
  RangeAlong,
  Reshape,
  ReshapeAssuming,
  ReshapeLike,
  Shape,
  Slice,
  SliceFrom,
  Split,
  SplitLike,
  Squeeze,
  sizesAlong,
  Transpose,
  Unsqueeze,
  ZerosLike,
} from "./ops/movement.ts";
export type { ReduceOptions } from "./ops/reduce.ts";
export {
  CumSum,
  LogSoftmax,
  ReduceMax,
  ReduceMean,
  ReduceSum,
  Softmax,
} from "./ops/reduce.ts";
export type { PrimitiveName, Primitives } from "./primitives.ts";
export { serialize } from "./serialize.ts";
export type { Feed, Fetched, SessionOptions } from "./session.ts";
export { GraphSession } from "./session.ts";
export type { Dim, TensorShape } from "./shape.ts";
export { addDims, divideDims, elementCount, formatShape, multiplyDims, sameShape } from "./shape.ts";
