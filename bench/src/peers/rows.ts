/** The inputs of the rows of `npm run bench:peers`, and how a row is measured: all contenders and the machine in turn. */

import { measureInTurn } from "../measure/in-turn.ts";
import type { MeasuredProgram } from "../measure/measured-program.ts";
import type { Row } from "../report/report.ts";
import type { BenchSettings } from "../section.ts";
import type { Comparison, Figures } from "./comparison.ts";
import type { Contender } from "./contender.ts";
import type { ModelWork } from "./model-work.ts";
import type { Precision } from "./precision.ts";

export interface PeerBench extends BenchSettings {
  /** SmolLM2-135M-Instruct as a Hugging Face folder. */
  readonly model: string;
  readonly work: ModelWork;
  readonly precision: Precision;
  /** Measures the rate of matrix products of 2048 x 2048 on every core. */
  readonly product: Contender;
}

export interface PeerRows {
  readonly comparisons: readonly Comparison[];
  /** Rows about details, which are printed after the comparisons. */
  readonly details: readonly Row[];
}

/** Measures rows. @param names the requested rows of the group */
export type MeasurePeers = (bench: PeerBench, names: readonly string[]) => Promise<PeerRows>;

/** A contender, and how one round of its work is measured. */
export interface Part {
  readonly contender: Contender;
  readonly measure: (program: MeasuredProgram) => Promise<number>;
}

export interface Measured {
  /** The values of each part, in their order. */
  readonly figures: readonly Figures[];
  /** GFLOP/s of the matrix product, by round, measured between the parts. */
  readonly product: readonly number[];
}

/** @param warmUpRounds rounds that are not counted */
export async function measureParts(
  bench: PeerBench,
  parts: readonly Part[],
  warmUpRounds: number,
): Promise<Measured> {
  const things = Object.fromEntries(
    parts.map(({ contender, measure }, part) => [String(part), () => contender.measure(measure)]),
  );
  const product = () =>
    bench.product.measure(async (program) => (await program.round<{ gflops: number }>()).gflops);
  const values = await measureInTurn({ product, ...things }, bench, warmUpRounds);
  return {
    figures: parts.map(({ contender }, part) =>
      contender.figures((values as Record<string, number[]>)[part]!),
    ),
    product: values.product,
  };
}

/** Percent of the machine's matrix-product rate, by round. @param flops operations per unit of the figure */
export function productShare(
  figures: Figures,
  product: readonly number[],
  flops: number,
): Pick<Comparison, "productShare"> {
  if (figures.kind === "missing") return {};
  return {
    productShare: figures.values.map((perSecond, round) => (100 * perSecond * flops) / product[round]! / 1e9),
  };
}
