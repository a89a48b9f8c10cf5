/** Inputs and results of a section of the bench. */

import type { Section } from "./report/report.ts";

/** Settings of the measurements. */
export interface BenchSettings {
  /** Rounds of each figure. */
  readonly rounds: number;
  /** Whether to do little work, which only shows that everything runs. */
  readonly isQuick: boolean;
  /** Folder of the installed peers, with `torch/bin/python`. */
  readonly peersFolder: string;
  /** Prints what is being measured. */
  readonly say: (line: string) => void;
}

/** Medians of the limits by name, if they were measured before. */
export type Limits = Readonly<Record<string, number>>;

/** Measures one section. */
export type Measure = (settings: BenchSettings, limits: Limits) => Promise<Section>;
