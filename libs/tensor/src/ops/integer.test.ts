import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { exactEightBitType } from "../eight-bit-type.ts";
import { ShapeError } from "../errors.ts";
import { Graph } from "../graph.ts";
import { GraphSession } from "../session.ts";
import { DequantizeLinear, MatMulInteger, MatMulIntegerToFloat, QuantizeLinear } from "./integer.ts";

describe("QuantizeLinear()", () => {
  test("rounds each row by its own scale, halves to even, and saturates", async () => {
    const graph = new Graph("quantize");
    const x = graph.input("x", "float32", [2, 5]);
    const scale = graph.constant("float32", [1, 0.5]);
    const zero = graph.constant("uint8", [128, 128]);
    graph.output("q", QuantizeLinear(x, scale, zero, 0));
    const session = await GraphSession.create(graph);
    const data = Float32Array.of(0.5, 1.5, -2.5, 200, -200, 0.5, 1.5, -0.25, 1, 0);
    const { q } = await session.run({ x: { dtype: "float32", data, shape: [2, 5] } });
    await session.release();
    assert.deepEqual(Array.from(q!.data, Number), [128, 130, 126, 255, 0, 129, 131, 128, 130, 128]);
  });

  test("has the type of its zero point", async () => {
    const graph = new Graph("quantize");
    const x = graph.input("x", "float32", [4]);
    graph.output("q", QuantizeLinear(x, graph.scalar("float32", 1), graph.scalar("int8", 0), 0));
    const session = await GraphSession.create(graph);
    const { q } = await session.run({
      x: { dtype: "float32", data: Float32Array.of(-200, -3, 2.5, 200), shape: [4] },
    });
    await session.release();
    assert.deepEqual(Array.from(q!.data, Number), [-128, -3, 2, 127]);
  });

  test("refuses scales that do not fit", () => {
    const graph = new Graph("quantize");
    const x = graph.input("x", "float32", [2, 5]);
    const three = graph.constant("float32", [1, 1, 1]);
    assert.throws(() => QuantizeLinear(x, three, graph.constant("uint8", [0, 0, 0]), 0), ShapeError);
    const two = graph.constant("float32", [1, 1]);
    assert.throws(
      () => QuantizeLinear(x, two, graph.constant("int32", [0, 0]), 0),
      /must be uint8 or int8, but is int32/,
    );
  });
});

describe("DequantizeLinear()", () => {
  test("multiplies each row by its own scale, from its zero point", async () => {
    const graph = new Graph("dequantize");
    const x = graph.input("x", "uint8", [2, 3]);
    const scale = graph.constant("float32", [1, 0.5]);
    graph.output("y", DequantizeLinear(x, scale, graph.constant("uint8", [128, 128]), 0));
    const session = await GraphSession.create(graph);
    const data = Uint8Array.of(0, 128, 255, 0, 129, 255);
    const { y } = await session.run({ x: { dtype: "uint8", data, shape: [2, 3] } });
    await session.release();
    assert.deepEqual(Array.from(y!.data, Number), [-128, 0, 127, -64, 0.5, 63.5]);
  });

  test("refuses a zero point of another type", () => {
    const graph = new Graph("dequantize");
    const x = graph.input("x", "uint8", [2]);
    const zero = graph.scalar("int8", 0);
    assert.throws(
      () => DequantizeLinear(x, graph.scalar("float32", 1), zero, 0),
      /must be uint8, but is int8/,
    );
  });
});

describe("MatMulIntegerToFloat()", () => {
  const [rows, inner, columns] = [3, 64, 5];
  const left = Uint8Array.from({ length: rows * inner }, (_, i) => (i * 37) % 256);
  const right = Int8Array.from({ length: inner * columns }, (_, i) => ((i * 53) % 255) - 127);
  const scales = Float32Array.from({ length: columns }, (_, i) => 2 ** -i);

  async function product(type: "int8" | "uint8"): Promise<number[]> {
    const graph = new Graph("product");
    const zero = type === "uint8" ? 128 : 0;
    const values = graph.initializer("values", type, [inner, columns]);
    const a = {
      values: graph.input("left", "uint8", ["rows", inner]),
      scale: graph.scalar("float32", 0.25),
      zeroPoint: graph.scalar("uint8", 128),
    };
    const scale = graph.initializer("scales", "float32", [columns]);
    graph.output("y", MatMulIntegerToFloat(a, { values, scale, zeroPoint: graph.scalar(type, zero) }));
    const stored = type === "int8" ? right : Uint8Array.from(right, (value) => value + 128);
    const session = await GraphSession.create(graph, { externalData: { values: stored, scales } });
    const { y } = await session.run({ left: { dtype: "uint8", data: left, shape: [rows, inner] } });
    await session.release();
    return Array.from(y!.data, Number);
  }

  const expected = Array.from({ length: rows * columns }, (_, at) => {
    const [row, column] = [Math.floor(at / columns), at % columns];
    let sum = 0;
    for (let k = 0; k < inner; k++) sum += (left[row * inner + k]! - 128) * right[k * columns + column]!;
    return sum * 0.25 * scales[column]!;
  });

  test("multiplies what the numbers stand for, exactly in the type that this machine is exact in", async () => {
    assert.deepEqual(await product(await exactEightBitType()), expected);
  });

  test("is exact with uint8 on every machine", async () => {
    assert.deepEqual(await product("uint8"), expected);
  });

  test("refuses a left operand of int8", () => {
    const graph = new Graph("product");
    const one = graph.scalar("float32", 1);
    const zeroPoint = graph.scalar("int8", 0);
    const a = { values: graph.input("a", "int8", [2, 3]), scale: one, zeroPoint };
    const b = { values: graph.input("b", "int8", [3, 4]), scale: one, zeroPoint };
    assert.throws(() => MatMulIntegerToFloat(a, b), /the left operand must be uint8/);
  });
});

const type = await exactEightBitType();

describe("products of batches of whole numbers", () => {
  const [batches, rows, inner, columns] = [2, 3, 8, 5];
  const left = Uint8Array.from({ length: batches * rows * inner }, (_, i) => (i * 37) % 256);
  const right = Int8Array.from({ length: batches * inner * columns }, (_, i) => ((i * 53) % 255) - 127);
  const scales = Float32Array.from({ length: batches * columns }, (_, i) => 2 ** -i);
  const sums = Array.from({ length: batches * rows * columns }, (_, at) => {
    const [row, column] = [Math.floor(at / columns), at % columns];
    const batch = Math.floor(row / rows);
    let sum = 0;
    for (let k = 0; k < inner; k++)
      sum += (left[row * inner + k]! - 128) * right[(batch * inner + k) * columns + column]!;
    return sum;
  });
  const stored = type === "int8" ? right : Uint8Array.from(right, (value) => value + 128);
  const feeds = {
    left: { dtype: "uint8", data: left, shape: [batches, rows, inner] },
    right: { dtype: type, data: stored, shape: [batches, inner, columns] },
  } as const;
  const operands = (graph: Graph) => ({
    a: { values: graph.input("left", "uint8", ["b", rows, inner]), zeroPoint: graph.scalar("uint8", 128) },
    b: {
      values: graph.input("right", type, ["b", inner, columns]),
      zeroPoint: graph.scalar(type, type === "int8" ? 0 : 128),
    },
  });

  test("MatMulInteger() gives the sums", async () => {
    const graph = new Graph("sums");
    const { a, b } = operands(graph);
    graph.output("y", MatMulInteger(a, b));
    const session = await GraphSession.create(graph);
    const { y } = await session.run(feeds);
    await session.release();
    assert.deepEqual(Array.from(y!.data, Number), sums);
    assert.ok(y!.data instanceof Int32Array);
  });

  test("MatMulIntegerToFloat() takes a scale for each column of each matrix", async () => {
    const graph = new Graph("scaled");
    const { a, b } = operands(graph);
    const scale = graph.input("scales", "float32", ["b", 1, columns]);
    graph.output("y", MatMulIntegerToFloat({ ...a, scale: graph.scalar("float32", 1) }, { ...b, scale }));
    const session = await GraphSession.create(graph);
    const fed = { dtype: "float32", data: scales, shape: [batches, 1, columns] } as const;
    const { y } = await session.run({ ...feeds, scales: fed });
    await session.release();
    const expected = sums.map(
      (sum, at) => sum * scales[Math.floor(at / (rows * columns)) * columns + (at % columns)]!,
    );
    assert.deepEqual(Array.from(y!.data, Number), expected);
  });

  test("refuses scales that fit neither the columns nor the matrices", () => {
    const graph = new Graph("scaled");
    const { a, b } = operands(graph);
    const scale = graph.input("scales", "float32", ["b", columns]);
    assert.throws(
      () => MatMulIntegerToFloat({ ...a, scale: graph.scalar("float32", 1) }, { ...b, scale }),
      ShapeError,
    );
  });
});
