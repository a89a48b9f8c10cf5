/** The port to what the updates of a run imitate beside its rollouts (`algorithm.supervised`). */

import type { TrainingSample } from "@hone/train";

export interface SupervisedBatches {
  /** Reads everything once. @throws {TerminalError} naming the first conversation that cannot be learnt. */
  check(): Promise<void>;
  /**
   * The samples of each update of a step, in the order of the updates; undefined where the run imitates nothing. The same step
   * has the same ones.
   */
  batches(step: number): Promise<readonly (readonly TrainingSample[])[] | undefined>;
}
