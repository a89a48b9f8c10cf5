/** Which eight-bit type this machine multiplies by exactly. */
import { Graph } from "./graph.ts";
import { MatMulIntegerToFloat } from "./ops/integer.ts";
import { GraphSession } from "./session.ts";

/**
 * How whole numbers of eight bits are stored as the right operand of a product: as they are, or with 128 added. Products are the same.
 *
 * x64 processors with VNNI multiply uint8 by int8 exactly, and faster than anything else. Older ones add two products in sixteen bits,
 * where large ones overflow; there uint8 by uint8 takes another way, which is exact.
 */
export type EightBitType = "int8" | "uint8";

const ROWS = 8;
const INNER = 64;
const COLUMNS = 64;
const LARGEST = { left: 255, right: 127 };

let known: Promise<EightBitType> | undefined;

/** Tries it with the largest products, once per thread. */
export function exactEightBitType(): Promise<EightBitType> {
  known ??= tryInt8();
  return known;
}

async function tryInt8(): Promise<EightBitType> {
  const graph = new Graph("eight bits");
  const left = graph.input("left", "uint8", ["rows", INNER]);
  const right = graph.initializer(
    "right",
    "int8",
    [INNER, COLUMNS],
    new Int8Array(INNER * COLUMNS).fill(LARGEST.right),
  );
  const one = graph.scalar("float32", 1);
  const product = MatMulIntegerToFloat(
    { values: left, scale: one, zeroPoint: graph.scalar("uint8", 0) },
    { values: right, scale: one, zeroPoint: graph.scalar("int8", 0) },
  );
  graph.output("product", product);
  const session = await GraphSession.create(graph, { intraOpThreads: 1 });
  try {
    // A single row may be computed by another kernel.
    for (const rows of [1, ROWS]) {
      const data = new Uint8Array(rows * INNER).fill(LARGEST.left);
      const results = await session.run({ left: { dtype: "uint8", data, shape: [rows, INNER] } });
      const sums = results.product!.data as Float32Array;
      if (sums.some((sum) => sum !== LARGEST.left * LARGEST.right * INNER)) return "uint8";
    }
    return "int8";
  } finally {
    await session.release();
  }
}
