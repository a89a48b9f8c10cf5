import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { ModelProtoSchema } from "@hone/onnx-proto";
import { GraphError, ShapeError } from "./errors.ts";
import { gradients } from "./gradients.ts";
import { Graph } from "./graph.ts";
import {
  Add,
  After,
  Cast,
  Exp,
  MatMul,
  Mul,
  ReduceSum,
  Reshape,
  ReshapeAssuming,
  ReshapeLike,
} from "./index.ts";
import { neededNodes, serialize } from "./serialize.ts";

describe("Graph", () => {
  test("stores equal constants once", () => {
    const g = new Graph("g");
    const x = g.input("x", "float32", [2]);
    Add(Mul(x, 2), 2);
    assert.equal(g.initializers.length, 1);
  });

  test("refuses names in use, tensors of another graph and data of the wrong size", () => {
    const [a, b] = [new Graph("a"), new Graph("b")];
    const x = a.input("x", "float32", [2]);
    assert.throws(() => a.input("x", "float32", [2]), GraphError);
    assert.throws(() => Add(x, b.input("x", "float32", [2])), GraphError);
    assert.throws(() => b.output("x", x), GraphError);
    assert.throws(() => a.initializer("w", "float32", [3], new Float32Array(2)), GraphError);
  });

  test("errors of operators name the broken rule", () => {
    const g = new Graph("g");
    const x = g.input("x", "float32", [2, 3]);
    const n = g.input("n", "int64", [2]);
    assert.throws(
      () => MatMul(x, x),
      /Cannot apply MatMul: the summed axes must have the same size, but the product is \[2, 3\] x \[2, 3\]/,
    );
    assert.throws(() => Exp(n), ShapeError);
    assert.throws(() => Reshape(x, [4, 2]), ShapeError);
    assert.throws(() => Add(x, n), /the operands must have the same type, but are float32 and int64/);
  });

  test("Reshape() can infer one symbolic size, and ReshapeLike() reads several from another tensor", () => {
    const g = new Graph("g");
    const x = g.input("x", "float32", ["b", "t", 6]);
    assert.deepEqual(Reshape(x, ["b", "t", 2, 3]).shape, ["b", "t", 2, 3]);
    const flat = Reshape(x, [-1, 6]);
    assert.deepEqual(flat.shape, ["b*t", 6]);
    const product = Exp(flat);
    assert.throws(() => Reshape(product, ["b", "t", 6]), /ReshapeLike/);
    assert.deepEqual(ReshapeLike(product, x).shape, ["b", "t", 6]);
  });

  test("ReshapeAssuming() gives a symbolic size another name", () => {
    const g = new Graph("g");
    const x = g.input("x", "float32", [1, "tokens", 6]);
    assert.throws(() => Reshape(x, ["sequences", 2, 3]), ShapeError);
    assert.deepEqual(ReshapeAssuming(x, ["sequences", 2, 3]).shape, ["sequences", 2, 3]);
    assert.throws(() => ReshapeAssuming(x, ["sequences", 2, 2]), /must stay the same/);
    assert.throws(() => ReshapeAssuming(x, ["sequences", "heads", 6]), /one size must be symbolic/);
  });

  test("a reshape of a reshape views the source, except through After()", () => {
    const g = new Graph("g");
    const x = g.input("x", "float32", ["b", "t", 6]);
    const flat = Reshape(x, [-1, 6]);
    assert.equal(Reshape(flat, ["b", "t", 6]), x);
    assert.equal(Reshape(Reshape(x, ["b", "t", 2, 3]), [-1, 6]).node?.inputs[0], x);
    const waiting = After(x, Exp(x));
    assert.equal(Reshape(waiting, [-1, 6]).node?.inputs[0], waiting);
  });
});

describe("serialize()", () => {
  test("writes the shape of every value that a node makes", () => {
    const g = new Graph("g");
    const x = g.input("x", "float32", ["b", "t", 6]);
    const product = MatMul(Reshape(x, [-1, 6]), g.input("w", "float32", [6, 4]));
    g.output("kept", Exp(product));
    g.output("summed", ReduceSum(Mul(product, 2)));
    const { graph } = fromBinary(ModelProtoSchema, serialize(g));
    const described = new Map(
      [...graph!.valueInfo, ...graph!.output].map(({ name, type }) => {
        assert.ok(type?.value.case === "tensorType");
        return [name, type.value.value.shape!.dim.map(({ value }) => String(value.value))];
      }),
    );
    const made = graph!.node.flatMap(({ output }) => output);
    assert.deepEqual([...described.keys()].sort(), made.sort());
    assert.deepEqual(described.get("kept"), ["b*t", "4"]);
  });
});

describe("gradients()", () => {
  test("refuses a loss of several numbers and a tensor that the loss does not depend on", () => {
    const g = new Graph("g");
    const x = g.input("x", "float32", [2]);
    const y = g.input("y", "float32", [2]);
    assert.throws(
      () => gradients(g, x, [x]),
      /the loss must be one floating-point number, but is float32\[2\]/,
    );
    assert.throws(() => gradients(g, ReduceSum(x), [y]), /the loss does not depend on y/);
  });

  test("does not pass through whole numbers", () => {
    const g = new Graph("g");
    const x = g.input("x", "float32", [2]);
    const loss = ReduceSum(Cast(Cast(x, "int64"), "float32"));
    assert.throws(() => gradients(g, loss, [x]), GraphError);
  });

  test("adds no node that an output does not need", () => {
    const g = new Graph("g");
    const x = g.input("x", "float32", [2, 3]);
    const w = g.input("w", "float32", [3, 4]);
    const loss = ReduceSum(MatMul(x, w));
    g.output("dw", gradients(g, loss, [w])[0]!);
    const products = neededNodes(g).filter((node) => node.primitive.endsWith("MatMul"));
    assert.equal(products.length, 1, "neither the forward product nor dx is needed for dw");
  });
});
