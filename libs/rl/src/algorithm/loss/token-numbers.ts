/** The numbers of a trained token that losses are made of. */

/** Numbers of a trained token that a loss may read, beside what the head under training says of it ({@link HeadScore}). */
export const TokenInput = {
  /** Log-probability when the token was sampled. */
  behaviourLogprob: "behaviourLogprob",
  advantage: "advantage",
  /** Log-probability under the reference policy. */
  referenceLogprob: "referenceLogprob",
  /** What the judges made the token's rollout worth, before the run shaped it. */
  reward: "reward",
  /** 1 where the loss chose the token from all tokens of the minibatch (`PolicyLoss.select`), else 0. */
  selected: "selected",
  /** A critic's value of the token's place before the first update of the step. */
  oldValue: "oldValue",
  /** What a critic is to predict there. */
  return: "return",
  /** Number of the token's sample; tokens of one sample have the same. */
  sequence: "sequence",
  /** Number of the token's segment: an unbroken run of trained tokens in a sample, which is a turn. */
  segment: "segment",
} as const;
export type TokenInput = (typeof TokenInput)[keyof typeof TokenInput];

/** What a loss is a function of: the one number that the head under training gives each trained token. */
export const HeadScore = {
  /** Log-probability of the token, of a language model. */
  logprob: "logprob",
  /** What a critic expects to come from the token on. */
  value: "value",
} as const;
export type HeadScore = (typeof HeadScore)[keyof typeof HeadScore];

/** Inputs that say which tokens belong together. They follow from the samples, so that nobody has to supply them. */
export type GroupInput = "sequence" | "segment";

export function isGroupInput(name: TokenInput): name is GroupInput {
  return name === TokenInput.sequence || name === TokenInput.segment;
}

/**
 * Largest |log ratio| that enters an exponential. e^20 is far outside every clip range, and its products stay finite
 * in float32, where an overflow to infinity would make the gradient of the unclipped side NaN.
 */
export const MAX_LOG_RATIO = 20;
