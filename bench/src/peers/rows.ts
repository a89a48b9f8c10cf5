/** What the rows of the bench of peers are given, and how one is measured: everybody in turn, the machine too. */

import { measureInTurn } from "../measure/in-turn.ts";
import type { MeasuredProgram } from "../measure/measured-program.ts";
import type { Row } from "../report/report.ts";
import type { BenchSettings } from "../section.ts";
import type { Comparison, Figures } from "./comparison.ts";
import type { Contender } from "./contender.ts";
import type { ModelWork } from "./model-work.ts";

export interface PeerBench extends BenchSettings {
  /** SmolLM2-135M-Instruct as a Hugging Face folder. */
  readonly model: string;
  readonly work: ModelWork;
  /** Multiplies 2048-cubes on every core. */
  readonly product: Contender;
}

export interface PeerRows {
  readonly comparisons: readonly Comparison[];
  /** What stands behind them. */
  readonly details: readonly Row[];
}

/** Measures rows. @param names those of the group that were asked for */
export type MeasurePeers = (bench: PeerBench, names: readonly string[]) => Promise<PeerRows>;

/** One who does the work, and how one round of it is measured. */
export interface Part {
  readonly contender: Contender;
  readonly measure: (program: MeasuredProgram) => Promise<number>;
}

export interface Measured {
  /** In the order of the parts. */
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

/** Percent of the machine's matrix products, by round. @param flops of the work per unit of the figure */
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
