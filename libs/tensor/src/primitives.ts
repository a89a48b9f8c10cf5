/**
 * The primitives: every ONNX operator that a graph may contain, with its attributes.
 *
 * Operators keep their ONNX names. The types of the tables below and of the gradient rules (`rules/table.ts`) depend on
 * {@link Primitives}, so that a primitive without an attribute kind or a gradient rule does not compile. Parameters that
 * are input tensors in ONNX (axes, shapes, split sizes) are inputs here too.
 */

/** Attributes by primitive. */
export interface Primitives {
  // Element-wise, one input.
  Neg: Record<never, never>;
  Abs: Record<never, never>;
  Sign: Record<never, never>;
  Floor: Record<never, never>;
  Exp: Record<never, never>;
  Log: Record<never, never>;
  Sqrt: Record<never, never>;
  Reciprocal: Record<never, never>;
  Sigmoid: Record<never, never>;
  Cos: Record<never, never>;
  Sin: Record<never, never>;
  Identity: { stopsGradient: boolean };
  Cast: { to: number };
  // Element-wise, two or three inputs, with broadcasting.
  Add: Record<never, never>;
  Sub: Record<never, never>;
  Mul: Record<never, never>;
  Div: Record<never, never>;
  Min: Record<never, never>;
  Max: Record<never, never>;
  Clip: Record<never, never>;
  Where: Record<never, never>;
  Equal: Record<never, never>;
  Less: Record<never, never>;
  LessOrEqual: Record<never, never>;
  Greater: Record<never, never>;
  GreaterOrEqual: Record<never, never>;
  And: Record<never, never>;
  // Products.
  MatMul: Record<never, never>;
  FusedMatMul: { transA: number; transB: number; alpha: number };
  Gemm: { transA: number; transB: number; alpha: number };
  // Eight bits.
  QuantizeLinear: { axis: number };
  DequantizeLinear: { axis: number };
  MatMulInteger: Record<never, never>;
  MatMulIntegerToFloat: Record<never, never>;
  // Reductions and along-axis functions.
  ReduceSum: { keepdims: number };
  ReduceMean: { keepdims: number };
  ReduceMax: { keepdims: number };
  Softmax: { axis: number };
  LogSoftmax: { axis: number };
  CumSum: Record<never, never>;
  // Movement.
  Reshape: Record<never, never>;
  Transpose: { perm: readonly number[] };
  Concat: { axis: number };
  Split: { axis: number };
  Slice: Record<never, never>;
  Expand: Record<never, never>;
  Unsqueeze: Record<never, never>;
  Squeeze: Record<never, never>;
  Shape: { start: number; end: number };
  Range: Record<never, never>;
  // Indexing.
  Gather: { axis: number; isDistinct: boolean };
  GatherElements: { axis: number };
  ScatterElements: { axis: number; reduction: "none" | "add" };
  ScatterND: { reduction: "none" | "add" };
  // Several steps in one operator.
  SimplifiedLayerNormalization: { axis: number; epsilon: number; stash_type: number };
  QuickGelu: { alpha: number };
  RotaryEmbedding: { num_heads: number };
  // Control. The attributes are a `Branch` each (graph.ts).
  If: { then_branch: object; else_branch: object };
}

/** Name of a primitive. */
export type PrimitiveName = keyof Primitives;

/** How an attribute is written in a `NodeProto`. A hint is only for the gradient rule and is not written. */
export type AttributeKind = "int" | "float" | "ints" | "string" | "branch" | "hint";

/** Attribute kinds by primitive. */
export const ATTRIBUTE_KINDS: {
  readonly [P in PrimitiveName]: { readonly [A in keyof Primitives[P]]: AttributeKind };
} = {
  Neg: {},
  Abs: {},
  Sign: {},
  Floor: {},
  Exp: {},
  Log: {},
  Sqrt: {},
  Reciprocal: {},
  Sigmoid: {},
  Cos: {},
  Sin: {},
  Identity: { stopsGradient: "hint" },
  Cast: { to: "int" },
  Add: {},
  Sub: {},
  Mul: {},
  Div: {},
  Min: {},
  Max: {},
  Clip: {},
  Where: {},
  Equal: {},
  Less: {},
  LessOrEqual: {},
  Greater: {},
  GreaterOrEqual: {},
  And: {},
  MatMul: {},
  FusedMatMul: { transA: "int", transB: "int", alpha: "float" },
  Gemm: { transA: "int", transB: "int", alpha: "float" },
  QuantizeLinear: { axis: "int" },
  DequantizeLinear: { axis: "int" },
  MatMulInteger: {},
  MatMulIntegerToFloat: {},
  ReduceSum: { keepdims: "int" },
  ReduceMean: { keepdims: "int" },
  ReduceMax: { keepdims: "int" },
  Softmax: { axis: "int" },
  LogSoftmax: { axis: "int" },
  CumSum: {},
  Reshape: {},
  Transpose: { perm: "ints" },
  Concat: { axis: "int" },
  Split: { axis: "int" },
  Slice: {},
  Expand: {},
  Unsqueeze: {},
  Squeeze: {},
  Shape: { start: "int", end: "int" },
  Range: {},
  Gather: { axis: "int", isDistinct: "hint" },
  GatherElements: { axis: "int" },
  ScatterElements: { axis: "int", reduction: "string" },
  ScatterND: { reduction: "string" },
  SimplifiedLayerNormalization: { axis: "int", epsilon: "float", stash_type: "int" },
  QuickGelu: { alpha: "float" },
  RotaryEmbedding: { num_heads: "int" },
  If: { then_branch: "branch", else_branch: "branch" },
};

/** Operators that onnxruntime adds to the ONNX standard; all others are in the standard domain "". */
export const MICROSOFT_DOMAIN = "com.microsoft";
const MICROSOFT: ReadonlySet<PrimitiveName> = new Set(["FusedMatMul", "MatMulIntegerToFloat", "QuickGelu"]);

/** Domain of the operator. */
export function domainOf(primitive: PrimitiveName): string {
  return MICROSOFT.has(primitive) ? MICROSOFT_DOMAIN : "";
}
