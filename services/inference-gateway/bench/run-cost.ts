/**
 * Measures the cost of a run by its shape: S sequences, Q new tokens each, contexts of L positions. It is the least processor time
 * of several runs, as that varies little on a busy machine. RUN_COST of the engine comes from here.
 *
 *   node services/inference-gateway/bench/run-cost.ts [--hidden 64] [--layers 4] [--heads 4] [--kvHeads 2] [--scattered]
 */

import { parseArgs } from "node:util";
import { Random } from "@hone/core";
import { initialiseWeights, PAGE_ROWS, resolveModelSpec } from "@hone/nn";
import { OnnxRunner } from "../src/embedded/onnx/onnx-runner.ts";

const { values } = parseArgs({
  options: {
    hidden: { type: "string", default: "64" },
    layers: { type: "string", default: "4" },
    heads: { type: "string", default: "4" },
    kvHeads: { type: "string", default: "2" },
    scattered: { type: "boolean", default: false },
  },
});
const REPEATS = 9;
const spec = resolveModelSpec({
  vocabSize: 64,
  hiddenSize: Number(values.hidden),
  numLayers: Number(values.layers),
  numHeads: Number(values.heads),
  numKeyValueHeads: Number(values.kvHeads),
});
const runner = await OnnxRunner.create(spec, initialiseWeights(spec, 1), {
  maxCacheBytes: 512 * 2 ** 20,
  maxSequences: 1_000,
  intraOpThreads: 1,
});
const random = new Random(1);

function item(context: number, count: number, nextPage: () => number) {
  const pages = Int32Array.from({ length: Math.ceil(context / PAGE_ROWS) }, nextPage);
  const tokenIds = new Int32Array(context).fill(3);
  return { tokenIds, pages, start: context - count, count, wantsLogits: true };
}

for (const queries of [1, 8, 32]) {
  for (const sequences of [1, 16, 64, 256]) {
    for (const context of [64, 256, 512]) {
      const pages = sequences * Math.ceil(context / PAGE_ROWS);
      // Pages of the whole range are used, as in a pool after a while.
      runner.copyRows(0, pages + 1, 1);
      let page = 1;
      const nextPage = values.scattered ? () => 1 + random.nextInt(pages) : () => page++;
      const items = Array.from({ length: sequences }, () => item(context, queries, nextPage));
      let least = Number.POSITIVE_INFINITY;
      for (let i = 0; i < REPEATS; i++) {
        const before = process.cpuUsage();
        await runner.run(items);
        const { user, system } = process.cpuUsage(before);
        least = Math.min(least, user + system);
      }
      const perRow = (least / sequences / context).toFixed(3);
      console.log(`S ${sequences} Q ${queries} L ${context}: ${least} us, ${perRow} us per context row`);
    }
  }
}
await runner.dispose();
