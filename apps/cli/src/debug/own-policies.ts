/** Policies that need no model: given answers, and random tokens. */

import type { GenerateCall, Policy, PolicyGeneration } from "@hone/agents";
import { Random } from "@hone/core";
import { FinishReason } from "@hone/rl";
import type { Tokenizer } from "@hone/tokenizer";

/**
 * Answers each call with the next text, and with the last one once all are used. The texts were not sampled, so they have no
 * logprobs.
 * @param answers at least one.
 */
export function answersPolicy(answers: readonly string[], tokenizer: Tokenizer): Policy {
  let calls = 0;
  return {
    async generate(call) {
      const text = answers[Math.min(calls++, answers.length - 1)] ?? "";
      const end = tokenizer.eosTokenId;
      const ids = [...tokenizer.encode(text), ...(end === undefined ? [] : [end])];
      return generationOf(call, ids, { logprobs: [], isEnded: end !== undefined });
    },
  };
}

/** Draws each token uniformly from the vocabulary, with the call's seed. */
export function randomPolicy(tokenizer: Tokenizer): Policy {
  const logprob = -Math.log(tokenizer.vocabSize);
  return {
    async generate(call) {
      const random = new Random(call.seed);
      const ids: number[] = [];
      let isEnded = false;
      while (ids.length < call.sampling.maxNewTokens && !isEnded) {
        const id = random.nextInt(tokenizer.vocabSize);
        ids.push(id);
        isEnded = call.stopTokenIds.includes(id);
      }
      return generationOf(call, ids, { logprobs: ids.map(() => logprob), isEnded });
    },
  };
}

/** The generation of these tokens, cut at the call's limit. */
function generationOf(
  { sampling, onTokens }: GenerateCall,
  ids: readonly number[],
  { logprobs, isEnded }: { readonly logprobs: readonly number[]; readonly isEnded: boolean },
): PolicyGeneration {
  const tokenIds = ids.slice(0, sampling.maxNewTokens);
  for (const id of tokenIds) onTokens?.([id]);
  const isWhole = isEnded && tokenIds.length === ids.length;
  return {
    tokenIds,
    logprobs,
    versions: logprobs.length === 0 ? [] : [{ version: 0, tokenCount: tokenIds.length }],
    finishReason: isWhole ? FinishReason.stop : FinishReason.length,
    cachedTokens: 0,
    generationMs: 0,
    replica: "",
  };
}
