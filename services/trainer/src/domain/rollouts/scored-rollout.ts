/** A rollout as it came over the stream: what training reads of it, and where it stood. */

import type { Rollout } from "@hone/rl";
import type { Context } from "@hone/telemetry";

export interface ScoredRollout {
  readonly rollout: Rollout;
  /** Position in the stream. */
  readonly sequence: number;
  /** Room that it takes in the stream as a scored episode. */
  readonly bytes: number;
  /** How often the run had been resumed after a failure when it asked for the rollout. */
  readonly resumption: number;
  /** Trace of the rollout, which its `train` span joins. */
  readonly trace: Context;
}
