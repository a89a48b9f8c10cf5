/** The threads that share an operator of a run. */

import { availableParallelism } from "node:os";
import { contextLayoutFor, type ModelSpec } from "@hone/nn";
import type { SessionOptions } from "@hone/tensor";

/** How a runner's threads work. */
export type RunThreads = Required<Pick<SessionOptions, "intraOpThreads" | "spinUs">>;

/** Each thread must compute more than one row, as another kernel computes single rows (D3 of the graph). */
const MAX_INTRA_OP_THREADS = 8;

/**
 * Between two products of a large model are operators that one thread computes. The other threads should not sleep meanwhile,
 * as that costs as much processor time, and in addition the time to wake up at some hundred products a step.
 */
const SPIN_US = 50;

/** Whether a model is so large that threads share its operators and its contexts may have slots. */
export function isLarge(spec: ModelSpec): boolean {
  return contextLayoutFor(spec) === "slots";
}

/** The threads of a runner's session. @param options 0 threads = one for small models, every core for large ones; spinUs depends on the size, too. */
export function runThreads(
  spec: ModelSpec,
  { intraOpThreads, spinUs }: Pick<RunThreads, "intraOpThreads"> & Partial<RunThreads>,
): RunThreads {
  const ownChoice = isLarge(spec) ? availableParallelism() : 1;
  return {
    intraOpThreads: Math.min(intraOpThreads > 0 ? intraOpThreads : ownChoice, MAX_INTRA_OP_THREADS),
    spinUs: spinUs ?? (isLarge(spec) ? SPIN_US : 0),
  };
}
