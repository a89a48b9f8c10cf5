/** What a kind of completions is: its parameters, and its answers whole and in chunks. */

import type { TextDelta } from "../domain/serving/choice-text.ts";
import type { Choice, CompletionRequest } from "../domain/serving/complete.ts";
import type { ServedModel } from "../domain/serving/served-models.ts";

/** What all chunks of an answer, and the whole one, say alike. */
export interface AnswerHead {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  readonly model: string;
  readonly system_fingerprint: string;
}

/** Parameters that both kinds have. */
export interface CommonRequest {
  readonly model: string;
  readonly stream?: boolean | undefined;
  readonly stream_options?: { readonly include_usage?: boolean | undefined } | undefined;
}

export interface AnswerChunks {
  /** Before the first text of a choice; undefined = nothing. */
  begin(index: number): object | undefined;
  delta(index: number, delta: TextDelta): object;
  end(index: number, choice: Choice): object;
  /** After all choices. */
  usage(promptTokens: number, choices: readonly Choice[]): object;
}

export interface CompletionApi<Request extends CommonRequest> {
  /** Of ids of answers. */
  readonly prefix: string;
  /** @throws {ApiRequestError} naming the parameter that is wrong. */
  parse(body: string): Request;
  /** @throws {ApiRequestError | ChatTemplateError} where the model cannot be asked this. */
  plan(request: Request, model: ServedModel): CompletionRequest;
  whole(request: Request, head: AnswerHead, promptTokens: number, choices: readonly Choice[]): object;
  chunks(request: Request, head: AnswerHead): AnswerChunks;
}

export function wantsUsage({ stream_options }: CommonRequest): boolean {
  return stream_options?.include_usage === true;
}

export function usageOf(promptTokens: number, choices: readonly Choice[]) {
  const completionTokens = choices.reduce((sum, { tokenCount }) => sum + tokenCount, 0);
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    // The choices after the first share its prompt in any case.
    prompt_tokens_details: { cached_tokens: choices[0]?.cachedTokens ?? 0 },
    completion_tokens_details: { reasoning_tokens: 0 },
  };
}
