/** A part of the bench: what it is given, and what it gives. */

import type { Section } from "./report/report.ts";

/** How thoroughly to measure. */
export interface BenchSettings {
  /** Rounds of each figure. */
  readonly rounds: number;
  /** Small work: shows that everything runs, and its figures mean little. */
  readonly isQuick: boolean;
  /** Where the peers are installed: a folder with `torch/bin/python`. */
  readonly peersFolder: string;
  /** Says what is being measured, for the person who waits. */
  readonly say: (line: string) => void;
}

/** Figures of sections that ran before, for shares of the machine's limits: median by name. */
export type Limits = Readonly<Record<string, number>>;

/** Measures one section. */
export type Measure = (settings: BenchSettings, limits: Limits) => Promise<Section>;
