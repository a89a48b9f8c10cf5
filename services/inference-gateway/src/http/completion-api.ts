/** The interface of a kind of completions: its parameters, and its answers, whole or in chunks. */

import type { TextDelta } from "../domain/serving/choice-text.ts";
import type { Choice, CompletionRequest } from "../domain/serving/complete.ts";
import type { ServedModel } from "../domain/serving/served-models.ts";

/** Fields that are the same in a whole answer and in all of its chunks. */
export interface AnswerHead {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  readonly model: string;
  readonly system_fingerprint: string;
}

/** Parameters of both kinds that are read here. */
export interface CommonRequest {
  readonly model: string;
  readonly stream?: boolean | undefined;
  readonly stream_options?: { readonly include_usage?: boolean | undefined } | undefined;
}

export interface AnswerChunks {
  /** The chunk before the first text of a choice; undefined = there is none. */
  begin(index: number): object | undefined;
  delta(index: number, delta: TextDelta): object;
  end(index: number, choice: Choice): object;
  /** The chunk after all choices. */
  usage(promptTokens: number, choices: readonly Choice[]): object;
}

export interface CompletionApi<Request extends CommonRequest> {
  /** First part of an answer's id. */
  readonly prefix: string;
  /** @throws {ApiRequestError} naming the parameter that is wrong. */
  parse(body: string): Request;
  /** @throws {ApiRequestError | ChatTemplateError} when the model cannot answer the request. */
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
    // The other choices always share the prompt of the first.
    prompt_tokens_details: { cached_tokens: choices[0]?.cachedTokens ?? 0 },
    completion_tokens_details: { reasoning_tokens: 0 },
  };
}
