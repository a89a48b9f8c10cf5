/** How much faster this machine multiplies numbers of eight bits than float32 ones. */
import { type EightBitType, exactEightBitType } from "./eight-bit-type.ts";
import { Graph, type Tensor } from "./graph.ts";
import { MatMulIntegerToFloat } from "./ops/integer.ts";
import { MatMul } from "./ops/linalg.ts";
import { type Feed, GraphSession } from "./session.ts";

/** A product as in a language model of 135 million weights, for a batch of prompts. */
const SHAPE = { rows: 256, inner: 576, columns: 1_536 };
/** Measured runs, after one that is not measured. */
const ROUNDS = 9;

export interface EightBitSpeed {
  readonly type: EightBitType;
  /** Time of the float32 product over that of the eight-bit one. Rounding the rows and scaling the result is left out. */
  readonly ratio: number;
}

export async function measureEightBits(): Promise<EightBitSpeed> {
  const type = await exactEightBitType();
  const { rows, inner, columns } = SHAPE;
  const [x, w] = [rows * inner, inner * columns];
  const eight = await bestMs(
    (graph) => {
      const one = graph.scalar("float32", 1);
      const operand = (values: Tensor) => ({ values, scale: one, zeroPoint: graph.scalar(values.dtype, 0) });
      const right = graph.initializer(
        "right",
        type,
        [inner, columns],
        type === "int8" ? new Int8Array(w).fill(3) : new Uint8Array(w).fill(3),
      );
      return MatMulIntegerToFloat(operand(graph.input("left", "uint8", [rows, inner])), operand(right));
    },
    { dtype: "uint8", data: new Uint8Array(x).fill(5), shape: [rows, inner] },
  );
  const float = await bestMs(
    (graph) =>
      MatMul(
        graph.input("left", "float32", [rows, inner]),
        graph.initializer("right", "float32", [inner, columns], new Float32Array(w).fill(3)),
      ),
    { dtype: "float32", data: new Float32Array(x).fill(5), shape: [rows, inner] },
  );
  return { type, ratio: float / eight };
}

/** Milliseconds of the fastest run, as other work on the machine can only slow runs down. */
async function bestMs(build: (graph: Graph) => Tensor, left: Feed): Promise<number> {
  const graph = new Graph("product");
  graph.output("product", build(graph));
  const session = await GraphSession.create(graph);
  try {
    let best = Number.POSITIVE_INFINITY;
    for (let round = 0; round <= ROUNDS; round++) {
      const startedAt = performance.now();
      await session.run({ left });
      if (round > 0) best = Math.min(best, performance.now() - startedAt);
    }
    return best;
  } finally {
    await session.release();
  }
}
