/**
 * Words of a turn's `info` that one part of Hone writes and another reads. What environments and agents put there beside
 * them is their own.
 */

export const TurnInfo = {
  /** Name of the environment's state in which the turn acted. The environment names it in its `info`, or Hone digests what it showed. */
  state: "state",
  /** How many calls of tools stand in the answer that cannot be read as one; absent = none. Judges ask for it. */
  invalidToolCalls: "invalidToolCalls",
  /** Control tokens that the model sampled within an answer, which its text leaves out; absent = none. Judges ask for it. */
  controlTokens: "controlTokens",
} as const;
