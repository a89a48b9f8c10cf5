/**
 * The veto of a token that the training engine finds next to impossible: one such token shows that the whole sample was not
 * sampled from what is trained (https://richardli.xyz/rl-collapse; verl's `rollout_token_veto_threshold`). A sample is kept where
 *
 *   e^x >= veto   for all of its tokens, x = log old - log behaviour
 */

import { z } from "zod";
import { Level, pool } from "./level.ts";
import { ratioOf } from "./measure.ts";
import type { Kept } from "./rejection.ts";
import { shareOf } from "./summary.ts";
import type { ComparedTokens } from "./tokens.ts";

/** The option `correction.veto`; null = none. */
export const vetoSchema = z.number().positive().max(1).nullable().default(null);

export function vetoSamples(tokens: ComparedTokens, veto: number): Kept {
  const falls = tokens.logRatios.map((x) => -x);
  const { values, unitOf } = pool(falls, Level.sequenceMax, tokens);
  const isVetoed = (fall: number) => ratioOf(-fall) < veto;
  const kept = Uint8Array.from(unitOf, (sample) => (isVetoed(values[sample]!) ? 0 : 1));
  return { kept, figures: kept.length === 0 ? {} : { "veto/sample/share": shareOf(values, isVetoed) } };
}
