/**
 * Compares what a model says in eight bits with what it says in float32, over texts of several kinds:
 *
 *   node services/inference-gateway/bench/quantization.ts MODEL [--texts 200] [--tokens 96]
 *
 * Each text is read once by both. Prints for each kind, over all positions: the mean and the 99th percentile of the KL divergence of the next token's
 * distribution from that of float32 in nats, how often the most likely token is the same, and the perplexities of the text.
 */

import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { parseArgs } from "node:util";
import { loadModel } from "@hone/checkpoint";
import {
  type Attend,
  buildHead,
  buildTransformer,
  type Linear,
  listParameters,
  listQuantized,
  type ModelSpec,
  packedAttend,
  quantizedLinear,
  quantizeWeights,
  weightInitializers,
} from "@hone/nn";
import {
  Cast,
  Equal,
  Exp,
  GatherElements,
  Graph,
  GraphSession,
  LogSoftmax,
  Mul,
  ReduceMax,
  ReduceSum,
  Sub,
  type Tensor,
  Unsqueeze,
  Where,
} from "@hone/tensor";
import { ChatRenderer, loadTokenizer } from "@hone/tokenizer";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { texts: { type: "string", default: "200" }, tokens: { type: "string", default: "96" } },
});
const [folder] = positionals;
if (folder === undefined) throw new Error("Give the folder of a model");
const { spec, weights } = await loadModel(folder);
const tokenizer = await loadTokenizer(folder);
const session = await GraphSession.create(comparisonGraph(spec), {
  externalData: { ...weights, ...(await quantizeWeights(spec, weights, "uint8")) },
});

interface Position {
  readonly divergence: number;
  readonly isSame: boolean;
  readonly float: number;
  readonly quantized: number;
}

const byKind = new Map<string, Position[]>();
for (const { kind, ids } of await texts()) {
  const length = ids.length;
  const int64 = (values: readonly number[]) => ({
    dtype: "int64" as const,
    shape: [1, length],
    data: BigInt64Array.from(values, BigInt),
  });
  const results = await session.run({
    tokenIds: int64(ids),
    positionIds: int64(ids.map((_, i) => i)),
    visibleEnd: int64(ids.map(() => length)),
    nextIds: int64(ids.map((_, i) => ids[i + 1] ?? 0)),
  });
  const at = (name: string, i: number) => Number(results[name]!.data[i]);
  const positions = byKind.get(kind) ?? [];
  byKind.set(kind, positions);
  for (let i = 0; i < length - 1; i++) {
    positions.push({
      divergence: at("divergence", i),
      isSame: at("same", i) === 1,
      float: at("float", i),
      quantized: at("quantized", i),
    });
  }
}
for (const [kind, positions] of [...byKind, ["all", [...byKind.values()].flat()] as const]) {
  const mean = (of: (position: Position) => number) =>
    positions.reduce((sum, position) => sum + of(position), 0) / positions.length;
  const sorted = positions.map(({ divergence }) => divergence).sort((a, b) => a - b);
  const high = sorted[Math.floor(0.99 * sorted.length)]!;
  const perplexity = (of: (position: Position) => number) => Math.exp(-mean(of)).toFixed(3);
  console.log(
    `${kind}: ${positions.length} positions, KL ${mean((p) => p.divergence).toFixed(5)} (99 %: ${high.toFixed(4)}), same token ${(100 * mean((p) => Number(p.isSame))).toFixed(2)} %, perplexity ${perplexity((p) => p.float)} and ${perplexity((p) => p.quantized)}`,
  );
}

/** Outputs, one number for each token: divergence, same, and the logarithms of the next token's probability in float32 and in eight bits. */
function comparisonGraph(spec: ModelSpec): Graph {
  const graph = new Graph("comparison");
  const ids = (name: string) => graph.input(name, "int64", [1, "tokens"]);
  const [tokenIds, positionIds, nextIds] = [ids("tokenIds"), ids("positionIds"), ids("nextIds")];
  const weights = weightInitializers(graph, listParameters(spec));
  const visibleEnds = [ids("visibleEnd")];
  const logprobs = (attend: Attend, linear?: Linear): Tensor => {
    const hidden = buildTransformer(graph, spec, { tokenIds, positionIds, weights, attend, linear });
    return LogSoftmax(buildHead(spec, hidden, weights, linear));
  };
  const float = logprobs(packedAttend(graph, spec, visibleEnds));
  const multiply = quantizedLinear(graph, listQuantized(spec), "uint8");
  const rounded = packedAttend(graph, spec, visibleEnds, { type: "uint8", positions: positionIds });
  const quantized = logprobs(rounded, multiply);
  const overVocabulary = { axes: [2], keepDims: false };
  const isLargest = Equal(float, ReduceMax(float, { axes: [2] }));
  const ofLargest = ReduceMax(Where(isLargest, quantized, -1e9), overVocabulary);
  graph.output("divergence", ReduceSum(Mul(Exp(float), Sub(float, quantized)), overVocabulary));
  graph.output("same", Cast(Equal(ofLargest, ReduceMax(quantized, overVocabulary)), "float32"));
  const next = Unsqueeze(nextIds, [2]);
  graph.output("float", GatherElements(float, next, 2));
  graph.output("quantized", GatherElements(quantized, next, 2));
  return graph;
}

/** Texts of four kinds, in equal parts: prose and code of this repository, chats about sums, and numbers in JSON. */
async function texts(): Promise<{ kind: string; ids: number[] }[]> {
  const each = Math.ceil(Number(options.texts) / 4);
  const root = path.join(import.meta.dirname, "../../..");
  const chat = new ChatRenderer(tokenizer);
  const excerpts = async (kind: string, folder: string, ending: string) => {
    const names = (await readdir(path.join(root, folder), { recursive: true }))
      .filter((name) => name.endsWith(ending) && !name.includes("node_modules"))
      .sort();
    const whole = await Promise.all(
      names.slice(0, each).map((name) => readFile(path.join(root, folder, name), "utf8")),
    );
    // Several excerpts of a file, if there are too few files.
    return Array.from({ length: each }, (_, i) => {
      const ids = tokenizer.encode(whole[i % whole.length]!.slice(1_000 * Math.floor(i / whole.length)));
      return { kind, ids: Array.from(ids) };
    });
  };
  const chats = Array.from({ length: each }, (_, i) => {
    const [a, b] = [17 + 13 * i, 5 + 7 * i];
    const question = `Ann has ${a} apples and buys ${b} more. Then she gives half of them to Bob. How many has each?`;
    const answer = `Ann has ${a} + ${b} = ${a + b} apples. Half of ${a + b} is ${(a + b) / 2}. So each of them has ${(a + b) / 2} apples.`;
    const { tokenIds } = chat.render([
      { role: "user", content: question },
      { role: "assistant", content: answer },
    ]);
    return { kind: "chats", ids: Array.from(tokenIds) };
  });
  const numbers = Array.from({ length: each }, (_, i) => {
    const rows = Array.from({ length: 6 }, (_, k) => ({
      id: i * 6 + k,
      square: (i + k) ** 2,
      isEven: (i + k) % 2 === 0,
    }));
    return { kind: "numbers", ids: Array.from(tokenizer.encode(JSON.stringify(rows))) };
  });
  const all = [
    ...(await excerpts("prose", "docs", ".md")),
    ...(await excerpts("code", "libs", ".ts")),
    ...chats,
    ...numbers,
  ];
  return all.map(({ kind, ids }) => ({ kind, ids: ids.slice(0, Number(options.tokens)) }));
}
