/**
 * Compares every gradient rule with central differences; onnxruntime computes both.
 *
 * Cases run in float64 if the kernel supports it, so that the differences are accurate to about 1e-9. Cases for kernels that
 * support only float32 use a larger step and tolerance.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { type DType, toData } from "../dtype.ts";
import { gradients } from "../gradients.ts";
import { Graph, type Tensor } from "../graph.ts";
import * as e from "../ops/elementwise.ts";
import { QuickGelu, RotaryEmbedding, SimplifiedLayerNormalization } from "../ops/fused.ts";
import { Gather, GatherElements, ScatterElements, ScatterND } from "../ops/indexing.ts";
import { FusedMatMul, Gemm, MatMul } from "../ops/linalg.ts";
import * as m from "../ops/movement.ts";
import * as r from "../ops/reduce.ts";
import type { PrimitiveName } from "../primitives.ts";
import { type Feed, GraphSession } from "../session.ts";
import type { TensorShape } from "../shape.ts";
import { stopRule } from "./rule.ts";
import { GRADIENT_RULES } from "./table.ts";

interface Case {
  readonly name: string;
  /** Run-time shapes of the inputs. */
  readonly inputs: readonly (readonly number[])[];
  readonly build: (g: Graph, x: readonly Tensor[]) => Tensor;
  /** Values of an input's elements, by default uniform in [-1, 1). */
  readonly values?: (random: Random) => number;
  readonly dtype?: DType;
  /** Shapes as declared in the graph, if they are symbolic. */
  readonly declared?: readonly TensorShape[];
}

const positive = (random: Random) => 0.5 + random.next();
const index = (g: Graph, values: readonly number[], shape: readonly number[]) =>
  g.constant("int64", values, shape);

const CASES: { readonly [P in PrimitiveName]?: readonly Case[] } = {
  Neg: [{ name: "plain", inputs: [[3]], build: (_g, [x]) => e.Neg(x!) }],
  Abs: [{ name: "plain", inputs: [[3]], build: (_g, [x]) => e.Abs(x!) }],
  Exp: [{ name: "plain", inputs: [[3]], build: (_g, [x]) => e.Exp(x!) }],
  Log: [{ name: "plain", inputs: [[3]], values: positive, build: (_g, [x]) => e.Log(x!) }],
  Sqrt: [{ name: "plain", inputs: [[3]], values: positive, build: (_g, [x]) => e.Sqrt(x!) }],
  Reciprocal: [{ name: "plain", inputs: [[3]], values: positive, build: (_g, [x]) => e.Reciprocal(x!) }],
  Sigmoid: [{ name: "plain", inputs: [[3]], build: (_g, [x]) => e.Sigmoid(x!) }],
  Cos: [{ name: "plain", inputs: [[3]], build: (_g, [x]) => e.Cos(x!) }],
  Sin: [{ name: "plain", inputs: [[3]], build: (_g, [x]) => e.Sin(x!) }],
  Identity: [{ name: "plain", inputs: [[3]], build: (_g, [x]) => e.Identity(x!) }],
  Cast: [
    {
      name: "through float32",
      inputs: [[3]],
      dtype: "float32",
      build: (_g, [x]) => e.Cast(e.Cast(x!, "float64"), "float32"),
    },
  ],
  Add: [
    { name: "broadcast of a row", inputs: [[2, 3], [3]], build: (_g, [a, b]) => e.Add(a!, b!) },
    {
      name: "broadcast both ways",
      inputs: [
        [2, 1],
        [1, 3],
      ],
      build: (_g, [a, b]) => e.Add(a!, b!),
    },
    {
      name: "broadcast over symbolic axes",
      inputs: [
        [2, 3],
        [1, 3],
      ],
      declared: [
        ["n", "m"],
        [1, "m"],
      ],
      build: (_g, [a, b]) => e.Add(a!, b!),
    },
    { name: "a tensor with itself", inputs: [[3]], build: (_g, [a]) => e.Add(a!, a!) },
  ],
  Sub: [{ name: "broadcast", inputs: [[3], [2, 3]], build: (_g, [a, b]) => e.Sub(a!, b!) }],
  Mul: [
    {
      name: "broadcast",
      inputs: [
        [2, 3],
        [2, 1],
      ],
      build: (_g, [a, b]) => e.Mul(a!, b!),
    },
    { name: "a tensor with itself", inputs: [[3]], build: (_g, [a]) => e.Mul(a!, a!) },
  ],
  Div: [{ name: "broadcast", inputs: [[2, 3], [3]], values: positive, build: (_g, [a, b]) => e.Div(a!, b!) }],
  Min: [{ name: "broadcast", inputs: [[2, 3], [3]], build: (_g, [a, b]) => e.Min(a!, b!) }],
  Max: [{ name: "broadcast", inputs: [[2, 3], [3]], build: (_g, [a, b]) => e.Max(a!, b!) }],
  Clip: [{ name: "inside and outside", inputs: [[8]], build: (_g, [x]) => e.Clip(x!, -0.4, 0.3) }],
  Where: [
    {
      name: "broadcast branches",
      inputs: [[2, 3], [3]],
      build: (_g, [a, b]) => e.Where(e.Greater(a!, 0.1), a!, b!),
    },
  ],
  MatMul: [
    {
      name: "matrices",
      inputs: [
        [2, 3],
        [3, 4],
      ],
      build: (_g, [a, b]) => MatMul(a!, b!),
    },
    {
      name: "a batch and one matrix",
      inputs: [
        [2, 2, 3],
        [3, 4],
      ],
      build: (_g, [a, b]) => MatMul(a!, b!),
    },
    {
      name: "a batch of symbolic size and one matrix",
      inputs: [
        [2, 2, 3],
        [3, 4],
      ],
      declared: [
        ["b", "t", 3],
        [3, 4],
      ],
      build: (_g, [a, b]) => MatMul(a!, b!),
    },
    {
      name: "two batches, one broadcast",
      inputs: [
        [2, 2, 3],
        [1, 3, 2],
      ],
      build: (_g, [a, b]) => MatMul(a!, b!),
    },
  ],
  FusedMatMul: [false, true]
    .flatMap((transA) =>
      [false, true].map((transB) => ({
        name: `transA ${transA}, transB ${transB}`,
        dtype: "float32" as const,
        inputs: [transA ? [2, 3, 2] : [2, 2, 3], transB ? [2, 4, 3] : [2, 3, 4]],
        build: (_g: Graph, [a, b]: readonly Tensor[]) => FusedMatMul(a!, b!, { transA, transB, alpha: 0.7 }),
      })),
    )
    .concat([
      {
        name: "a batch and one transposed matrix",
        dtype: "float32",
        inputs: [
          [2, 2, 3],
          [4, 3],
        ],
        build: (_g, [a, b]) => FusedMatMul(a!, b!, { transB: true }),
      },
    ]),
  Gemm: [false, true].map((transposed) => ({
    name: transposed ? "transposed" : "plain",
    dtype: "float32" as const,
    inputs: [transposed ? [3, 2] : [2, 3], transposed ? [4, 3] : [3, 4], [2, 4]],
    build: (_g: Graph, [a, b, c]: readonly Tensor[]) =>
      Gemm(a!, b!, c!, { transA: transposed, transB: transposed, alpha: 0.7 }),
  })),
  ReduceSum: [
    { name: "one axis kept", inputs: [[2, 3]], build: (_g, [x]) => r.ReduceSum(x!, { axes: [1] }) },
    {
      name: "axes dropped",
      inputs: [[2, 3, 2]],
      build: (_g, [x]) => r.ReduceSum(x!, { axes: [0, 2], keepDims: false }),
    },
  ],
  ReduceMean: [
    {
      name: "one axis dropped",
      inputs: [[2, 3]],
      build: (_g, [x]) => r.ReduceMean(x!, { axes: [0], keepDims: false }),
    },
  ],
  ReduceMax: [
    {
      name: "one axis dropped",
      inputs: [[2, 3]],
      build: (_g, [x]) => r.ReduceMax(x!, { axes: [1], keepDims: false }),
    },
  ],
  Softmax: [{ name: "last axis", inputs: [[2, 4]], build: (_g, [x]) => r.Softmax(x!) }],
  LogSoftmax: [{ name: "last axis", inputs: [[2, 4]], build: (_g, [x]) => r.LogSoftmax(x!) }],
  CumSum: [{ name: "first axis", inputs: [[4, 2]], build: (_g, [x]) => r.CumSum(x!, 0) }],
  Reshape: [
    { name: "static", inputs: [[2, 3]], build: (_g, [x]) => m.Reshape(x!, [3, -1]) },
    {
      name: "two symbolic sizes merged",
      inputs: [[2, 3, 4]],
      declared: [["b", "t", 4]],
      build: (_g, [x]) => m.Reshape(x!, [-1, 4]),
    },
  ],
  Transpose: [
    { name: "a cycle of axes", inputs: [[2, 3, 2]], build: (_g, [x]) => m.Transpose(x!, [1, 2, 0]) },
  ],
  Concat: [
    {
      name: "three parts",
      inputs: [
        [2, 1],
        [2, 3],
        [2, 2],
      ],
      build: (_g, x) => m.Concat(x, 1),
    },
    {
      name: "parts of sizes known at run time, one of them made in the graph",
      inputs: [[1], [3]],
      declared: [["s"], ["t"]],
      build: (_g, [x, y]) => m.Concat([e.Mul(x!, x!), y!], 0),
    },
  ],
  Split: [
    {
      name: "one part unused",
      inputs: [[2, 6]],
      build: (_g, [x]) => {
        const [a, , c] = m.Split(x!, [2, 2, 2], 1);
        return e.Mul(a!, c!);
      },
    },
  ],
  Slice: [{ name: "the middle", inputs: [[2, 5]], build: (_g, [x]) => m.Slice(x!, 1, 1, 3) }],
  Expand: [
    {
      name: "along two axes",
      inputs: [
        [1, 3],
        [4, 2, 3],
      ],
      build: (_g, [x, like]) => e.Mul(m.ExpandLike(x!, like!), like!),
    },
  ],
  Unsqueeze: [{ name: "two axes", inputs: [[2, 3]], build: (_g, [x]) => m.Unsqueeze(x!, [0, 2]) }],
  Squeeze: [{ name: "one axis", inputs: [[2, 1, 3]], build: (_g, [x]) => m.Squeeze(x!, [1]) }],
  Gather: [
    {
      name: "rows, one twice",
      inputs: [[4, 3]],
      build: (g, [x]) => Gather(x!, index(g, [1, 3, 1, 0], [2, 2])),
    },
    {
      name: "distinct rows",
      inputs: [[4, 3]],
      build: (g, [x]) => Gather(x!, index(g, [3, 1], [2]), 0, { isDistinct: true }),
    },
  ],
  GatherElements: [
    {
      name: "one per row",
      inputs: [[2, 4]],
      build: (g, [x]) => GatherElements(x!, index(g, [2, 0, 1, 1], [2, 2]), 1),
    },
  ],
  ScatterElements: [
    {
      name: "added",
      inputs: [
        [2, 4],
        [2, 2],
      ],
      build: (g, [x, u]) => ScatterElements(x!, index(g, [1, 1, 3, 0], [2, 2]), u!, 1, "add"),
    },
    {
      name: "replaced",
      inputs: [
        [2, 4],
        [2, 2],
      ],
      build: (g, [x, u]) => ScatterElements(x!, index(g, [1, 2, 3, 0], [2, 2]), u!, 1),
    },
  ],
  ScatterND: [
    {
      name: "rows, one twice",
      inputs: [
        [3, 2],
        [3, 2],
      ],
      build: (g, [x, u]) => ScatterND(x!, index(g, [2, 0, 2], [3, 1]), u!, "add"),
    },
    {
      name: "rows replaced",
      inputs: [
        [3, 2],
        [2, 2],
      ],
      build: (g, [x, u]) => ScatterND(x!, index(g, [2, 0], [2, 1]), u!),
    },
  ],
  SimplifiedLayerNormalization: [
    {
      name: "rows",
      dtype: "float32",
      inputs: [[3, 4], [4]],
      build: (_g, [x, w]) => SimplifiedLayerNormalization(x!, w!, 1e-6),
    },
    {
      name: "heads of a symbolic batch",
      dtype: "float32",
      inputs: [[2, 3, 2, 4], [4]],
      declared: [["b", "t", 2, 4], [4]],
      build: (_g, [x, w]) => SimplifiedLayerNormalization(x!, w!, 1e-6),
    },
  ],
  QuickGelu: [
    { name: "SiLU", dtype: "float32", inputs: [[5]], build: (_g, [x]) => QuickGelu(x!) },
    { name: "alpha 1.7", dtype: "float32", inputs: [[5]], build: (_g, [x]) => QuickGelu(x!, 1.7) },
  ],
  RotaryEmbedding: [
    {
      name: "two heads",
      dtype: "float32",
      inputs: [[1, 3, 8]],
      build: (g, [x]) => {
        const angles = Array.from({ length: 6 }, (_, i) => i * 0.4);
        const cosines = g.constant("float32", angles.map(Math.cos), [1, 3, 2]);
        const sines = g.constant("float32", angles.map(Math.sin), [1, 3, 2]);
        return RotaryEmbedding(x!, cosines, sines, 2);
      },
    },
  ],
};

describe("gradient rules", () => {
  for (const [primitive, rule] of Object.entries(GRADIENT_RULES)) {
    const cases = CASES[primitive as PrimitiveName] ?? [];
    test(`${primitive} has a test case or has no gradient`, () =>
      assert.ok(cases.length > 0 || rule === stopRule));
    for (const c of cases) {
      test(`${primitive} agrees with central differences: ${c.name}`, () => checkCase(primitive, c));
    }
  }
});

async function checkCase(primitive: string, c: Case): Promise<void> {
  const dtype = c.dtype ?? "float64";
  const graph = new Graph(primitive);
  const inputs = c.inputs.map((shape, i) => graph.input(`x${i}`, dtype, c.declared?.[i] ?? shape));
  const result = c.build(graph, inputs);
  assert.ok(
    graph.nodes.some((node) => node.primitive === primitive),
    "the case contains its primitive",
  );
  // The loss depends on the square of every element, so that the gradients of different elements differ.
  const weighted = e.Mul(e.Mul(result, result), 0.5);
  const loss = r.ReduceSum(e.Add(weighted, e.Mul(result, 0.3)), { keepDims: false });
  graph.output("loss", loss);
  for (const [i, gradient] of gradients(graph, loss, inputs).entries()) graph.output(`g${i}`, gradient);
  const session = await GraphSession.create(graph, { intraOpThreads: 1 });

  const random = new Random(7);
  const draw = c.values ?? ((source: Random) => 2 * source.next() - 1);
  const values = c.inputs.map((shape) =>
    Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => draw(random)),
  );
  const feeds = (): Record<string, Feed> =>
    Object.fromEntries(
      values.map((x, i) => [`x${i}`, { dtype, data: toData(dtype, x), shape: c.inputs[i]! }]),
    );
  const lossAt = async () => Number((await session.run(feeds(), ["loss"])).loss!.data[0]);

  const found = await session.run(feeds());
  const [step, tolerance] = dtype === "float64" ? [1e-5, 1e-7] : [1e-2, 4e-3];
  for (const [i, x] of values.entries()) {
    const gradient = Array.from(found[`g${i}`]!.data, Number);
    assert.equal(gradient.length, x.length);
    for (let at = 0; at < x.length; at++) {
      const kept = x[at]!;
      x[at] = kept + step;
      const above = await lossAt();
      x[at] = kept - step;
      const below = await lossAt();
      x[at] = kept;
      const expected = (above - below) / (2 * step);
      const error = Math.abs(gradient[at]! - expected);
      assert.ok(
        error <= tolerance * (1 + Math.abs(expected)),
        `x${i}[${at}]: ${gradient[at]} is not ${expected}`,
      );
    }
  }
  await session.release();
}
