/** Decides whether the engines grew. */

import { type Growth, growthOf, growthProblem, settled } from "../growth.ts";
import type { SoakSample } from "./soak-engines.ts";

export interface SoakVerdict {
  readonly processes: readonly (Growth & { readonly name: string; readonly peakBytes: number })[];
  /** One sentence for each process that grew. */
  readonly problems: readonly string[];
}

/** Fewest samples for a slope. */
const LEAST_SAMPLES = 10;

export function judgeSoak(samples: readonly SoakSample[]): SoakVerdict {
  const counted = settled(samples);
  if (counted.length < LEAST_SAMPLES) {
    return { processes: [], problems: [`the memory was sampled only ${counted.length} times`] };
  }
  const names = ["generation", "training"] as const;
  const processes = names.map((name) => ({
    name,
    peakBytes: Math.max(...samples.map((sample) => sample.processes[name])),
    ...growthOf(
      counted.map(({ seconds }) => seconds),
      counted.map((sample) => sample.processes[name]),
    ),
  }));
  const problems = processes.flatMap((process) => growthProblem(process.name, process) ?? []);
  return { processes, problems };
}
