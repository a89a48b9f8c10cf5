/** By what a token's part of a loss is held back or bounded: the vocabulary of the record of trained tokens. */

/** Fixed vocabulary; stored records hold the texts. */
export const TokenCut = {
  none: "none",
  /** The ratio is below the lower bound: no gradient, or a weight that no longer falls. */
  clipLow: "clip_low",
  /** The ratio is above the upper bound: no gradient, or a weight that no longer rises. */
  clipHigh: "clip_high",
  /** The ratio of a token with a negative advantage is above the dual clip: no gradient. */
  dualClip: "dual_clip",
  /** The loss leaves the token out, as its distribution has moved too far: no gradient. */
  mask: "mask",
  /** The loss chose the token from all of the minibatch. */
  selected: "selected",
  /** The importance weight is at the bound that keeps it finite or small. */
  bound: "bound",
  /** The correction of the rollouts left the token out: its weight in the loss is 0. */
  rejected: "rejected",
} as const;
export type TokenCut = (typeof TokenCut)[keyof typeof TokenCut];

/** Cuts that the figure `clip_fraction` does not count: guards, and the dual clip, which verl counts apart. */
const UNCOUNTED: ReadonlySet<TokenCut> = new Set([TokenCut.none, TokenCut.dualClip, TokenCut.bound]);

/** Whether a cut counts in the figure `clip_fraction`. */
export function isCounted(cut: TokenCut): boolean {
  return !UNCOUNTED.has(cut);
}
