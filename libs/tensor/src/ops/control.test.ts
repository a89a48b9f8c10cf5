import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { GraphError, ShapeError } from "../errors.ts";
import { Graph, type Tensor } from "../graph.ts";
import { type Feed, GraphSession } from "../session.ts";
import { If } from "./control.ts";
import { Add, Greater, Mul, Sub } from "./elementwise.ts";
import { ReduceMax } from "./reduce.ts";

const isPositive = (x: Tensor) => Greater(ReduceMax(x, { keepDims: false }), 0);

/** What a graph computes from x, a tensor of two numbers. */
async function runWith(graph: Graph, ...numbers: number[][]): Promise<Record<string, number[]>[]> {
  const session = await GraphSession.create(graph);
  const found: Record<string, number[]>[] = [];
  for (const x of numbers) {
    const feed: Feed = { dtype: "float32", data: Float32Array.from(x), shape: [x.length] };
    const results = await session.run({ x: feed });
    found.push(
      Object.fromEntries(Object.entries(results).map(([name, { data }]) => [name, Array.from(data, Number)])),
    );
  }
  await session.release();
  return found;
}

describe("If()", () => {
  test("computes the branch that the condition names, from tensors around it", async () => {
    const graph = new Graph("choice");
    const x = graph.input("x", "float32", ["n"]);
    const doubled = Mul(x, 2);
    const [sum, same] = If(
      isPositive(x),
      () => [Add(doubled, 100), doubled],
      () => [Sub(doubled, 100), x],
    );
    graph.output("sum", Add(sum!, 1));
    graph.output("same", same!);
    const [positive, negative] = await runWith(graph, [1, -2], [-1, -2]);
    assert.deepEqual(positive, { sum: [103, 97], same: [2, -4] });
    assert.deepEqual(negative, { sum: [-101, -103], same: [-1, -2] });
  });

  test("may lie in a branch, and write the same result twice", async () => {
    const graph = new Graph("nested");
    const x = graph.input("x", "float32", ["n"]);
    const y = Mul(x, 3);
    const [a, b] = If(
      isPositive(x),
      () => {
        const inner = Add(y, 1);
        return If(
          isPositive(Sub(x, 10)),
          () => [inner, inner],
          () => [y, Sub(inner, x)],
        );
      },
      () => [x, x],
    );
    graph.output("a", a!);
    graph.output("b", b!);
    const found = await runWith(graph, [20], [2], [-1]);
    assert.deepEqual(found, [
      { a: [61], b: [61] },
      { a: [6], b: [5] },
      { a: [-1], b: [-1] },
    ]);
  });

  test("keeps what its branches make for itself", () => {
    const graph = new Graph("hidden");
    const x = graph.input("x", "float32", []);
    let inside: Tensor | undefined;
    If(
      Greater(x, 0),
      () => {
        inside = Mul(x, 2);
        return [inside];
      },
      () => [x],
    );
    assert.throws(() => Add(inside!, 1), GraphError);
    assert.throws(() => graph.output("inside", inside!), /is made in a branch of an If/);
  });

  test("refuses conditions and results that do not fit", () => {
    const graph = new Graph("wrong");
    const x = graph.input("x", "float32", [2]);
    const condition = Greater(ReduceMax(x, { keepDims: false }), 0);
    const nothing = () => [];
    assert.throws(() => If(x, nothing, nothing), ShapeError);
    assert.throws(() => If(condition, nothing, nothing), /at least one/);
    assert.throws(
      () =>
        If(
          condition,
          () => [x],
          () => [ReduceMax(x)],
        ),
      /both branches must have the same results, and at least one, but have \(float32\[2\]\) and \(float32\[1\]\)/,
    );
    assert.equal(Mul(x, 2).shape.length, 1, "a branch that failed is closed");
  });
});
