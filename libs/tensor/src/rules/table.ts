/** The gradient rule of every primitive. A primitive without a rule does not compile. */
import type { PrimitiveName } from "../primitives.ts";
import * as elementwise from "./elementwise.ts";
import { rotaryEmbeddingRule, simplifiedLayerNormalizationRule } from "./fused.ts";
import { gatherElementsRule, gatherRule, scatterElementsRule, scatterNDRule } from "./indexing.ts";
import { fusedMatMulRule, gemmRule, matMulRule } from "./linalg.ts";
import { concatRule, expandRule, reshapeRule, sliceRule, splitRule, transposeRule } from "./movement.ts";
import {
  cumSumRule,
  logSoftmaxRule,
  reduceMaxRule,
  reduceMeanRule,
  reduceSumRule,
  softmaxRule,
} from "./reduce.ts";
import { type GradientRule, stopRule } from "./rule.ts";

export const GRADIENT_RULES: { readonly [P in PrimitiveName]: GradientRule<P> } = {
  Neg: elementwise.negRule,
  Exp: elementwise.expRule,
  Log: elementwise.logRule,
  Sqrt: elementwise.sqrtRule,
  Reciprocal: elementwise.reciprocalRule,
  Sigmoid: elementwise.sigmoidRule,
  Cos: elementwise.cosRule,
  Sin: elementwise.sinRule,
  Identity: elementwise.identityRule,
  Cast: elementwise.castRule,
  Add: elementwise.addRule,
  Sub: elementwise.subRule,
  Mul: elementwise.mulRule,
  Div: elementwise.divRule,
  Min: elementwise.minRule,
  Max: elementwise.maxRule,
  Clip: elementwise.clipRule,
  Where: elementwise.whereRule,
  Equal: stopRule,
  Less: stopRule,
  LessOrEqual: stopRule,
  Greater: stopRule,
  GreaterOrEqual: stopRule,
  And: stopRule,
  MatMul: matMulRule,
  FusedMatMul: fusedMatMulRule,
  Gemm: gemmRule,
  ReduceSum: reduceSumRule,
  ReduceMean: reduceMeanRule,
  ReduceMax: reduceMaxRule,
  Softmax: softmaxRule,
  LogSoftmax: logSoftmaxRule,
  CumSum: cumSumRule,
  Reshape: reshapeRule,
  Transpose: transposeRule,
  Concat: concatRule,
  Split: splitRule,
  Slice: sliceRule,
  Expand: expandRule,
  Unsqueeze: reshapeRule,
  Squeeze: reshapeRule,
  Shape: stopRule,
  Range: stopRule,
  Gather: gatherRule,
  GatherElements: gatherElementsRule,
  ScatterElements: scatterElementsRule,
  ScatterND: scatterNDRule,
  SimplifiedLayerNormalization: simplifiedLayerNormalizationRule,
  QuickGelu: elementwise.quickGeluRule,
  RotaryEmbedding: rotaryEmbeddingRule,
};
