/** Finds the token that completes a stop text. */

import { FinishReason, type VersionSpan } from "@hone/rl";
import { StopScanner, StreamingDecoder, type Tokenizer } from "@hone/tokenizer";
import type { PolicyGeneration } from "../policies/policy.ts";

export class StopTextFinder {
  readonly #tokenizer: Tokenizer;
  readonly #decoder: StreamingDecoder;
  readonly #scanner: StopScanner;
  readonly #readsSpecialTokens: boolean;
  #tokenCount = 0;
  #isOver = false;

  /** @param stopTexts none of them empty. */
  constructor(
    tokenizer: Tokenizer,
    stopTexts: readonly string[],
    options: { readonly readsSpecialTokens: boolean },
  ) {
    this.#tokenizer = tokenizer;
    this.#decoder = new StreamingDecoder(tokenizer);
    this.#scanner = new StopScanner(stopTexts);
    this.#readsSpecialTokens = options.readsSpecialTokens;
  }

  /** Whether a stop text is complete. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Number of tokens up to and including the one that completed it. */
  get tokenCount(): number {
    return this.#tokenCount;
  }

  push(tokenIds: readonly number[]): void {
    const { stopTokenIds } = this.#tokenizer;
    for (const id of tokenIds) {
      if (this.#isOver) return;
      this.#tokenCount++;
      const isSilent = this.#readsSpecialTokens ? stopTokenIds.includes(id) : this.#tokenizer.isSpecial(id);
      if (!isSilent) this.#isOver = this.#scanner.push(this.#decoder.push(id)).isStopped;
    }
  }
}

/** Cuts a generation to its first tokens. They are what the policy had generated if it had stopped there. */
export function cutAt(made: PolicyGeneration, tokenCount: number): PolicyGeneration {
  const versions: VersionSpan[] = [];
  let left = tokenCount;
  for (const { version, tokenCount: count } of made.versions) {
    if (left > 0) versions.push({ version, tokenCount: Math.min(count, left) });
    left -= count;
  }
  return {
    ...made,
    tokenIds: made.tokenIds.slice(0, tokenCount),
    logprobs: made.logprobs.slice(0, tokenCount),
    versions,
    finishReason: FinishReason.stopText,
  };
}
