import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { gradients } from "./gradients.ts";
import { Graph, type Tensor } from "./graph.ts";
import { Cast, Mul, StopGradient, StraightThrough, WithGradient } from "./ops/elementwise.ts";
import { GatherElements } from "./ops/indexing.ts";
import { ReduceSum } from "./ops/reduce.ts";
import { GraphSession } from "./session.ts";

/** The gradient of the sum of what is built from x. */
async function gradientAt(values: readonly number[], build: (x: Tensor, graph: Graph) => Tensor) {
  const graph = new Graph("gradient");
  const x = graph.input("x", "float64", ["n"]);
  const [gradient] = gradients(graph, ReduceSum(build(x, graph), { keepDims: false }), [x]);
  graph.output("gradient", gradient!);
  const session = await GraphSession.create(graph, { intraOpThreads: 1 });
  const feed = { dtype: "float64", data: Float64Array.from(values), shape: [values.length] } as const;
  const found = await session.run({ x: feed });
  await session.release();
  return Array.from(found.gradient!.data, Number);
}

describe("gradients()", () => {
  test("take what StopGradient() returns for a constant", async () => {
    // Only the second factor of x^2 x has a gradient.
    assert.deepEqual(await gradientAt([3, -2], (x) => Mul(StopGradient(Mul(x, x)), x)), [9, 4]);
  });

  test("are those of what StraightThrough() stands for, which need not be what it is", async () => {
    const rounded = (x: Tensor) => Cast(Cast(x, "int64"), "float64");
    assert.deepEqual(
      await gradientAt([2.5, -3], (x) => Mul(StraightThrough(rounded(x), Mul(x, x)), 3)),
      [15, -18],
    );
    assert.deepEqual(await gradientAt([2.5, -3], (x) => Mul(StraightThrough(rounded(x), x), x)), [4.5, -6]);
  });

  test("are what WithGradient() computes", async () => {
    const build = (x: Tensor) =>
      WithGradient(Mul(x, x), { inputs: [x], gradientsOf: (gradient) => [Mul(gradient, 7)] });
    assert.deepEqual(await gradientAt([2, 5], build), [7, 7]);
  });

  test("add up where an element is read several times", async () => {
    const read = (x: Tensor, graph: Graph) => GatherElements(x, graph.constant("int64", [2, 0, 2, 2]), 0);
    assert.deepEqual(await gradientAt([1, 2, 3], read), [1, 0, 3]);
  });
});
