/**
 * Measures how fast onnxruntime multiplies matrices of 2048 x 2048 in float32, with weights packed as in a model.
 *
 *   node bench/src/programs/matrix-product.ts [--threads 0]
 *
 * `--threads 0` uses every core.
 */

import { parseArgs } from "node:util";
import { Random } from "@hone/core";
import { Graph, GraphSession, MatMul } from "@hone/tensor";
import { answerRounds } from "./round-loop.ts";

const { values } = parseArgs({ options: { threads: { type: "string", default: "0" } } });
const SIZE = 2_048;
const RUNS = 4;

const random = new Random(1);
const matrix = () => Float32Array.from({ length: SIZE * SIZE }, () => random.next() - 0.5);
const graph = new Graph("product");
const left = graph.input("left", "float32", [SIZE, SIZE]);
const right = graph.initializer("right", "float32", [SIZE, SIZE], matrix());
graph.output("product", MatMul(left, right));
const session = await GraphSession.create(graph, { intraOpThreads: Number(values.threads) });
const feeds = { left: { dtype: "float32", data: matrix(), shape: [SIZE, SIZE] } } as const;
await session.run(feeds);
await answerRounds(async () => {
  const begun = performance.now();
  for (let run = 0; run < RUNS; run++) await session.run(feeds);
  return { gflops: (2 * SIZE ** 3 * RUNS) / (performance.now() - begun) / 1e6 };
});
await session.release();
