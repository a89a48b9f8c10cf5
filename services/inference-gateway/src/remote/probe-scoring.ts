/**
 * Finds out of which distribution a server's logprobs are. Releases and flags differ in this, and none reports it, but
 * rule 5 of the architecture, "logprobs are those of the sampling distribution", depends on it.
 *
 *   top-k 2, asking for the three most likely    processed: only two have a probability. Otherwise all three have.
 *   top-k 1 at T=0.5 and at T=2               raw: the same logprob of the same token. tempered: another one.
 *
 * If a model is certain of its token at every temperature, its server counts as raw, for which fewer parameters are allowed.
 */

import type { EngineSampling } from "../domain/inference-engine.ts";
import { type EngineServer, Scoring, type ServerChunk, type ServerWeights } from "./engine-server.ts";

/** The prompt of the probe, which works with any weights. */
type Ask = Pick<EngineServer, "generate">;

const PROBE_IDS = [1, 2, 3];
const COLD = 0.5;
/** vLLM refuses more. */
const HOT = 2;
/** Largest difference of the same logprob by float32 in another batch. */
const SAME = 1e-3;

export async function probeScoring(
  server: Ask,
  weights: ServerWeights,
  signal: AbortSignal,
): Promise<Scoring> {
  const ask = async (shape: Pick<EngineSampling, "temperature" | "topK" | "topLogprobs">) => {
    const sampling = { ...shape, topP: 1, maxNewTokens: 1, stopTokenIds: [] };
    const call = { promptIds: PROBE_IDS, sampling, maxNewTokens: 1, seed: 1, weights, isStreaming: false };
    let first: ServerChunk | undefined;
    for await (const chunk of server.generate(call, signal)) {
      if (chunk.tokenIds.length > 0) first ??= chunk;
    }
    return first;
  };
  const two = await ask({ temperature: 1, topK: 2, topLogprobs: 3 });
  const possible = two?.topLogprobs?.[0]?.length ?? 0;
  if (possible > 0 && possible < 3) return Scoring.processed;
  const [cold, hot] = [
    await ask({ temperature: COLD, topK: 1, topLogprobs: 0 }),
    await ask({ temperature: HOT, topK: 1, topLogprobs: 0 }),
  ];
  const difference = Math.abs((cold?.logprobs[0] ?? 0) - (hot?.logprobs[0] ?? 0));
  return difference > SAME ? Scoring.tempered : Scoring.raw;
}
