import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { Graph, GraphSession, Reshape } from "@hone/tensor";
import { resolveModelSpec } from "../model/model-spec.ts";
import { initialiseWeights } from "../model/parameters.ts";
import { weightInputs } from "../transformer.ts";
import { MASKED_SCORE } from "./attention.ts";
import { attendRounded, exactAttention, nearPowerOfTwo, summedRounding } from "./exact-sums.ts";

const WIDTH = 64;
const SEEN = 700;
const HEADS = 2;

const random = new Random(3);
const normal = () => Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
const rows = (count: number) => Array.from({ length: count }, () => Array.from({ length: WIDTH }, normal));

/** A token that is seen, or a place that is masked. */
type Place = { readonly key: number[]; readonly value: number[] } | undefined;

const spec = resolveModelSpec({
  vocabSize: 8,
  hiddenSize: 128,
  numLayers: 1,
  numHeads: HEADS,
  numKeyValueHeads: 1,
  headDim: WIDTH,
});
const tokens = rows(SEEN).map((key, i) => ({
  key,
  value: rows(1)[0]!.map((x) => x * (i % 7 === 0 ? 4 : 1)),
}));
const query = rows(HEADS).map((row, head) => row.map((x) => x * (head === 0 ? 0.01 : 2)));

/** What the heads of a query mix of the values at these places, which stand behind each other in this order. */
async function attend(places: readonly Place[]): Promise<Float32Array> {
  const graph = new Graph("attention");
  const size = places.length;
  const input = (name: string, heads: number, length: number) =>
    graph.input(name, "float32", [1, length, heads, WIDTH]);
  const [q, v] = [input("q", HEADS, 1), input("v", 1, size)];
  const keys = graph.input("keys", "float32", [1, 1, size, WIDTH]);
  const bias = graph.input("bias", "float32", [1, 1, HEADS, size]);
  const weights = weightInputs(graph, [
    { name: "model.layers.0.input_layernorm.weight", shape: [128], kind: "norm" },
  ]);
  const scales = graph.input("scales", "float32", [WIDTH]);
  const rounding = summedRounding(graph.constant("int32", [SEEN - 1, SEEN - 1], [1, 1, HEADS, 1]));
  const attendTo = attendRounded(
    spec,
    { weights, scalesOf: () => scales },
    (_layer, queries, _keys, values) => {
      const shape = [1, 1, size, WIDTH];
      return exactAttention(queries, keys, Reshape(values, shape), bias, rounding);
    },
  );
  graph.output("mixed", attendTo(0, q, keys, v));
  const feed = (shape: readonly number[], data: readonly number[]) => ({
    dtype: "float32" as const,
    data: Float32Array.from(data),
    shape,
  });
  const nothing = new Array<number>(WIDTH).fill(0);
  const session = await GraphSession.create(graph);
  const { mixed } = await session.run({
    q: feed([1, 1, HEADS, WIDTH], query.flat()),
    keys: feed(
      [1, 1, size, WIDTH],
      places.flatMap((place) => place?.key ?? nothing),
    ),
    v: feed(
      [1, size, 1, WIDTH],
      places.flatMap((place) => place?.value ?? nothing),
    ),
    bias: feed(
      [1, 1, HEADS, size],
      query.flatMap(() => places.map((place) => (place === undefined ? MASKED_SCORE : 0))),
    ),
    "model.layers.0.input_layernorm.weight": feed(
      [128],
      Array.from(initialiseWeights(spec, 1)["model.layers.0.input_layernorm.weight"]!),
    ),
    // Rows of a matrix whose products with normed inputs have a standard deviation of 1.
    scales: feed([WIDTH], new Array<number>(WIDTH).fill(3.2 / 127 / Math.sqrt(128))),
  });
  await session.release();
  return mixed!.data as Float32Array;
}

/** The same in float64, without rounding. */
function attendExactly(): number[] {
  return query.flatMap((q) => {
    const scores = tokens.map(({ key }) => key.reduce((sum, k, i) => sum + k * q[i]!, 0) / Math.sqrt(WIDTH));
    const largest = Math.max(...scores);
    const shares = scores.map((score) => Math.exp(score - largest));
    const total = shares.reduce((sum, share) => sum + share, 0);
    return q.map((_, i) => tokens.reduce((sum, { value }, at) => sum + shares[at]! * value[i]!, 0) / total);
  });
}

describe("exactAttention()", () => {
  test("has the same bits in any order of the tokens, among any number of masked places", async () => {
    const expected = await attend(tokens);
    const reversed = [...tokens].reverse();
    const spread = tokens.flatMap((token, i): Place[] => (i % 3 === 0 ? [undefined, token] : [token]));
    const behind = [...new Array<Place>(431).fill(undefined), ...tokens];
    for (const places of [reversed, spread, behind]) assert.deepEqual(await attend(places), expected);
  });

  test("differs from attention by less than the rounding of a single value", async () => {
    const [found, expected] = [await attend(tokens), attendExactly()];
    const error = Math.hypot(...expected.map((value, i) => value - found[i]!)) / Math.sqrt(expected.length);
    assert.ok(error > 1e-5 && error < 2 ** -6 / Math.sqrt(12), `${error}`);
  });
});

describe("nearPowerOfTwo()", () => {
  test("finds a power of two between 2/3 and 4/3 of a number, of any size", async () => {
    const numbers = Float32Array.from({ length: 400 }, (_, i) => 1.37 ** (i - 200));
    const graph = new Graph("powers");
    graph.output("found", nearPowerOfTwo(graph.input("x", "float32", [numbers.length])));
    const session = await GraphSession.create(graph);
    const { found } = await session.run({
      x: { dtype: "float32", data: numbers, shape: [numbers.length] },
    });
    await session.release();
    for (const [i, power] of (found!.data as Float32Array).entries()) {
      assert.ok(Number.isInteger(Math.log2(power)), `${power}`);
      const share = power / numbers[i]!;
      assert.ok(share > 0.6666 && share < 1.3334, `${power} for ${numbers[i]}`);
    }
  });
});
