import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { type EightBitType, exactEightBitType, Graph, GraphSession } from "@hone/tensor";
import { resolveModelSpec } from "../model/model-spec.ts";
import { initialiseWeights } from "../model/parameters.ts";
import { quantizedLinear } from "./quantized-linear.ts";
import { listQuantized, quantizeWeights } from "./quantized-weights.ts";
import { hadamardMatrix, rotationBlock } from "./rotation.ts";

const spec = resolveModelSpec({
  vocabSize: 24,
  hiddenSize: 48,
  numLayers: 1,
  numHeads: 3,
  intermediateSize: 64,
});
const GATE = "model.layers.0.mlp.gate_proj.weight";
const OUTPUT = "model.layers.0.self_attn.o_proj.weight";
const gate = listQuantized(spec).find(({ source }) => source === GATE)!;

/** x W^T for rows of x, by a quantized parameter of the model. */
async function multiply(
  x: Float32Array,
  name: string,
  {
    type = "uint8",
    weights = initialiseWeights(spec, 3),
  }: { type?: EightBitType; weights?: Record<string, Float32Array> } = {},
): Promise<Float32Array> {
  const graph = new Graph("linear");
  const input = graph.input("x", "float32", [1, "rows", spec.hiddenSize]);
  graph.output("y", quantizedLinear(graph, listQuantized(spec), type)(input, name));
  const session = await GraphSession.create(graph, {
    externalData: await quantizeWeights(spec, weights, type),
  });
  const shape = [1, x.length / spec.hiddenSize, spec.hiddenSize];
  const { y } = await session.run({ x: { dtype: "float32", data: x, shape } });
  await session.release();
  return y!.data as Float32Array;
}

/** Rows with a channel that is far larger than the others. */
function rowsWithOutlier(rows: number): Float32Array {
  const random = new Random(8);
  return Float32Array.from({ length: rows * spec.hiddenSize }, (_, i) =>
    i % spec.hiddenSize === 5 ? 30 + random.next() : random.next() - 0.5,
  );
}

function exactProduct(x: Float32Array, weight: Float32Array, inner: number): number[] {
  const outs = weight.length / inner;
  return Array.from({ length: (x.length / inner) * outs }, (_, at) => {
    const [row, out] = [Math.floor(at / outs), at % outs];
    let sum = 0;
    for (let k = 0; k < inner; k++) sum += x[row * inner + k]! * weight[out * inner + k]!;
    return sum;
  });
}

/** Size of the difference, relative to the size of what is expected. */
function errorOf(found: Float32Array, expected: readonly number[]): number {
  const size = (values: readonly number[]) => Math.hypot(...values);
  return size(expected.map((value, i) => value - found[i]!)) / size(expected);
}

describe("quantizedLinear()", () => {
  test("is the product to one percent, also of what a large channel leaves to the others", async () => {
    const weights = initialiseWeights(spec, 3);
    const plain = rowsWithOutlier(7).map((value) => (value > 1 ? 0.5 : value));
    for (const name of [GATE, OUTPUT]) {
      const error = errorOf(
        await multiply(plain, name),
        exactProduct(plain, weights[name]!, spec.hiddenSize),
      );
      assert.ok(error < 0.012, `${name}: ${error}`);
    }
    const x = rowsWithOutlier(7);
    const others = exactProduct(
      x.map((value) => (value > 1 ? 0 : value)),
      weights[GATE]!,
      spec.hiddenSize,
    );
    const exact = exactProduct(x, weights[GATE]!, spec.hiddenSize);
    const found = await multiply(x, GATE);
    const error = errorOf(
      found.map((value, i) => value - exact[i]! + others[i]!),
      others,
    );
    // Without the rotation it is three times as much.
    assert.ok(error < 0.12, `the other channels: ${error}`);
  });

  test("gives the same bits in both ways of storing, where the machine is exact in both", async () => {
    if ((await exactEightBitType()) === "uint8") return;
    const x = rowsWithOutlier(5);
    assert.deepEqual(await multiply(x, GATE, { type: "int8" }), await multiply(x, GATE));
  });

  test("gives a row the same bits alone and among others", async () => {
    const x = rowsWithOutlier(33);
    const all = await multiply(x, GATE);
    for (const row of [0, 1, 32]) {
      const alone = await multiply(x.slice(row * 48, (row + 1) * 48), GATE);
      assert.deepEqual(alone, all.slice(row * gate.out, (row + 1) * gate.out));
    }
  });

  test("a row of zeros has zeros, and one with infinity nothing finite", async () => {
    const x = new Float32Array(2 * spec.hiddenSize);
    x[spec.hiddenSize + 3] = Number.POSITIVE_INFINITY;
    const y = await multiply(x, GATE);
    assert.ok(y.slice(0, gate.out).every((value) => value === 0));
    assert.ok(y.slice(gate.out).every((value) => !Number.isFinite(value)));
  });

  test("one weight that is not finite, wherever it is, makes every result NaN", async () => {
    for (const name of [OUTPUT, GATE, "model.norm.weight", "model.embed_tokens.weight"]) {
      for (const broken of [Number.NaN, Number.NEGATIVE_INFINITY]) {
        const weights = initialiseWeights(spec, 3);
        weights[name]![5] = broken;
        const y = await multiply(rowsWithOutlier(2), GATE, { weights });
        assert.ok(
          y.every((value) => Number.isNaN(value)),
          `${name} ${broken}`,
        );
      }
    }
  });
});

describe("hadamardMatrix()", () => {
  test("is symmetric, orthonormal and has entries of one size", () => {
    const size = 16;
    const matrix = hadamardMatrix(size);
    for (let i = 0; i < size; i++) {
      for (let k = 0; k < size; k++) {
        let sum = 0;
        for (let j = 0; j < size; j++) sum += matrix[i * size + j]! * matrix[k * size + j]!;
        assert.equal(sum, i === k ? 1 : 0);
        assert.equal(matrix[i * size + k], matrix[k * size + i]);
        assert.equal(Math.abs(matrix[i * size + k]!), 0.25);
      }
    }
  });

  test("fits blocks to every width", () => {
    assert.deepEqual([576, 1536, 48, 6, 7].map(rotationBlock), [64, 64, 16, 2, 1]);
  });
});
