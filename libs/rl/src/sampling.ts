/** The parameters of the distribution that tokens are sampled from: `rollout.sampling` of a run file, and what every model call carries. */

import { z } from "zod";

const wholeNumber = z.number().int();

export const samplingSchema = z.strictObject({
  /** 0 = always the most likely token; otherwise logits are divided by it. */
  temperature: z.number().min(0).max(100).default(1),
  /** Smallest set of tokens whose probability reaches this; 1 = all. */
  topP: z.number().gt(0).max(1).default(1),
  /** Most likely tokens considered; 0 = all. */
  topK: wholeNumber.min(0).default(0),
  /** Smallest probability of a token, relative to that of the most likely one; 0 = all. */
  minP: z.number().min(0).max(1).default(0),
  /** Positive logits of tokens that are in the context are divided by it, negative ones multiplied; 1 = none. */
  repetitionPenalty: z.number().gt(0).max(100).default(1),
  /** Largest number of tokens of one turn. */
  maxNewTokens: wholeNumber.min(1).max(65_536).default(256),
});

type ResolvedSampling = z.output<typeof samplingSchema>;
/** Parameters that change nothing where they are left out. */
type Optional = "minP" | "repetitionPenalty";

/** A run's sampling; what is optional here changes nothing where it is absent. */
export type SamplingParameters = Readonly<Omit<ResolvedSampling, Optional>> &
  Readonly<Partial<Pick<ResolvedSampling, Optional>>>;
