import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { type EightBitType, exactEightBitType, Graph, GraphSession } from "@hone/tensor";
import { RowRounding } from "../quantization/row-rounding.ts";
import { MASKED_SCORE } from "./attention.ts";
import { eightBitAttention, nearPowerOfTwo, summedRounding } from "./eight-bit-attention.ts";

const WIDTH = 64;
const SEEN = 700;
const HEADS = 2;

const random = new Random(3);
const normal = () => Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
const rows = (count: number) => Array.from({ length: count }, () => Array.from({ length: WIDTH }, normal));

/** A token that is seen, or a place that is masked. */
type Place = { readonly key: number[]; readonly value: number[] } | undefined;

const eightBits = await exactEightBitType();
const tokens = rows(SEEN).map((key, i) => ({
  key,
  value: rows(1)[0]!.map((x) => x * (i % 7 === 0 ? 4 : 1)),
}));
const query = rows(HEADS).map((row, head) => row.map((x) => x * (head === 0 ? 0.01 : 2)));

/** What the heads of a query mix of the values at these places, which stand behind each other in this order. */
async function attend(places: readonly Place[], type: EightBitType = eightBits): Promise<Float32Array> {
  const graph = new Graph("attention");
  const size = places.length;
  const input = (name: string, shape: readonly number[]) => graph.input(name, "float32", shape);
  const q = input("q", [1, 1, HEADS, WIDTH]);
  const [keys, values] = ["keys", "values"].map((name) => input(name, [1, 1, size, WIDTH]));
  const bias = input("bias", [1, 1, HEADS, size]);
  const rounding = summedRounding(graph.constant("int32", [SEEN - 1, SEEN - 1], [1, 1, HEADS, 1]));
  const rows = new RowRounding(graph);
  const rounded = [keys!, values!].map((x) => rows.round(x, type));
  graph.output("mixed", eightBitAttention(rows, q, rounded[0]!, rounded[1]!, bias, rounding));
  const feed = (shape: readonly number[], data: readonly number[]) => ({
    dtype: "float32" as const,
    data: Float32Array.from(data),
    shape,
  });
  const nothing = new Array<number>(WIDTH).fill(0);
  const rowsOf = (part: "key" | "value") =>
    feed(
      [1, 1, size, WIDTH],
      places.flatMap((place) => place?.[part] ?? nothing),
    );
  const session = await GraphSession.create(graph);
  const { mixed } = await session.run({
    q: feed([1, 1, HEADS, WIDTH], query.flat()),
    keys: rowsOf("key"),
    values: rowsOf("value"),
    bias: feed(
      [1, 1, HEADS, size],
      query.flatMap(() => places.map((place) => (place === undefined ? MASKED_SCORE : 0))),
    ),
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

describe("eightBitAttention()", () => {
  test("has the same bits in any order of the tokens, among any number of masked places", async () => {
    const expected = await attend(tokens);
    const reversed = [...tokens].reverse();
    const spread = tokens.flatMap((token, i): Place[] => (i % 3 === 0 ? [undefined, token] : [token]));
    const behind = [...new Array<Place>(431).fill(undefined), ...tokens];
    for (const places of [reversed, spread, behind]) assert.deepEqual(await attend(places), expected);
  });

  test("has the same bits with both types of whole numbers", async () => {
    assert.deepEqual(await attend(tokens, "uint8"), await attend(tokens));
  });

  test("differs from attention by a few percent", async () => {
    const [found, expected] = [await attend(tokens), attendExactly()];
    const size = Math.hypot(...expected);
    const error = Math.hypot(...expected.map((value, i) => value - found[i]!)) / size;
    assert.ok(error > 1e-4 && error < 0.04, `${error}`);
  });

  test("takes what many tokens with small shares hold, beside one with a large share", async () => {
    // The first token has half of all shares, and the others 1/1400 each, which eight bits would round to 0.
    const [ones, zeros] = [1, 0].map((value) => new Array<number>(WIDTH).fill(value)) as [number[], number[]];
    const squares = query[1]!.reduce((sum, x) => sum + x * x, 0);
    const large = query[1]!.map((x) => (x * Math.log(SEEN) * Math.sqrt(WIDTH)) / squares);
    const places = Array.from(
      { length: SEEN },
      (_, i): Place => (i === 0 ? { key: large, value: zeros } : { key: zeros, value: ones }),
    );
    const mixed = await attend(places);
    for (const value of mixed.slice(WIDTH)) assert.ok(Math.abs(value - 0.5) < 0.02, `${value}`);
  });

  test("is zero where all values are", async () => {
    const places = tokens.map(({ key }): Place => ({ key, value: new Array<number>(WIDTH).fill(0) }));
    assert.deepEqual(new Set(await attend(places)), new Set([0]));
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
