/**
 * Finds out of which distribution a server tells logprobs, since releases and flags differ and none of them says it:
 * rule 5 of the architecture, "logprobs are those of the sampling distribution", depends on it.
 *
 *   top-k 1 at T=1      processed: 0. Otherwise the logprob r of the most likely token.
 *   top-k 2 at T=100    processed: about -ln 2, as the two are nearly alike at such a temperature.
 *   top-k 1 at T=100    raw: r again. tempered: another.
 *
 * A model that is sure of its token has r = 0 too; then the second question tells.
 */

import type { SamplingParameters } from "../inference-engine.ts";
import { type EngineServer, Scoring, type ServerWeights } from "./engine-server.ts";

/** What the probe asks with: any weights will do. */
type Ask = Pick<EngineServer, "generate">;

const PROBE_IDS = [1, 2, 3];
const HOT = 100;
const ZERO = 1e-3;
/** Two logits that are up to 30 apart. */
const HALF_TOLERANCE = 0.17;
/** What float32 and another batch make of the same logprob. */
const SAME = 1e-3;

export async function probeScoring(
  server: Ask,
  weights: ServerWeights,
  signal: AbortSignal,
): Promise<Scoring> {
  const ask = async (temperature: number, topK: number): Promise<number> => {
    const sampling: SamplingParameters = {
      temperature,
      topK,
      topP: 1,
      maxNewTokens: 1,
      stopTokenIds: [],
    };
    const call = { promptIds: PROBE_IDS, sampling, maxNewTokens: 1, seed: 1, weights, isStreaming: false };
    let logprob: number | undefined;
    for await (const chunk of server.generate(call, signal)) logprob ??= chunk.logprobs[0];
    return logprob ?? Number.NaN;
  };
  const likeliest = await ask(1, 1);
  const oneOfTwo = await ask(HOT, 2);
  if (Math.abs(likeliest) < ZERO && Math.abs(oneOfTwo + Math.LN2) < HALF_TOLERANCE) return Scoring.processed;
  const hot = await ask(HOT, 1);
  return Math.abs(hot - likeliest) < SAME ? Scoring.raw : Scoring.tempered;
}
