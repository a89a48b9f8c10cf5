/** Reads one event of vLLM's streamed completions. */

import { ServerRefusedError } from "../../domain/errors.ts";
import type { TokenLogprob } from "../../domain/inference-engine.ts";
import type { ServerChunk } from "../engine-server.ts";
import { AnswerReader, type Fields } from "../http/fields.ts";
import { messageOf } from "../http/http-client.ts";

/** vLLM's number for minus infinity, which JSON does not have. */
export const IMPOSSIBLE = -9_999;
const ACTION = "read a completion";

/**
 * Ids are in `token_ids`; older releases have them as `token_id:5` among the logprobs.
 * @returns undefined for an event without tokens.
 * @throws {ServerRefusedError} when the event reports a failure, or is not an event of vLLM.
 */
export function readCompletionChunk(server: string, event: unknown): ServerChunk | undefined {
  const read = new AnswerReader(server, ACTION);
  const fields = read.fields(event, "an event");
  if (fields.error !== undefined && fields.error !== null) {
    const code = read.fields(fields.error, "error").code;
    throw new ServerRefusedError(server, ACTION, typeof code === "number" ? code : 500, messageOf(event));
  }
  const cachedTokens = cachedOf(fields.usage);
  const [first] = read.list(fields.choices, "choices");
  if (first === undefined)
    return cachedTokens === undefined ? undefined : { tokenIds: [], logprobs: [], cachedTokens };
  const choice = read.fields(first, "a choice");
  const told =
    choice.logprobs === null || choice.logprobs === undefined ? {} : read.fields(choice.logprobs, "logprobs");
  const names = read.list(told.tokens ?? [], "logprobs.tokens");
  const tokenIds = Array.isArray(choice.token_ids)
    ? choice.token_ids.map((id) => read.id(id, "a token id"))
    : names.map((name) => idOfName(read, name));
  const logprobs = read
    .list(told.token_logprobs ?? [], "logprobs.token_logprobs")
    .map((logprob) => read.number(logprob, "a logprob"));
  if (logprobs.length !== tokenIds.length)
    throw read.broken("logprobs", `a list of ${tokenIds.length}`, logprobs);
  const end = endOf(read, choice);
  const tops = Array.isArray(told.top_logprobs)
    ? told.top_logprobs.map((top) => topOf(read, top))
    : undefined;
  return {
    tokenIds,
    logprobs,
    ...(tops !== undefined && tops.length === tokenIds.length && { topLogprobs: tops }),
    ...(end !== undefined && { end }),
    ...(cachedTokens !== undefined && { cachedTokens }),
  };
}

function idOfName(read: AnswerReader, name: unknown): number {
  const [, digits] = /^token_id:(\d+)$/.exec(String(name)) ?? [];
  if (digits === undefined) throw read.broken("a token", 'of the form "token_id:5"', name);
  return Number(digits);
}

function topOf(read: AnswerReader, top: unknown): TokenLogprob[] {
  if (top === null) return [];
  return Object.entries(read.fields(top, "top_logprobs"))
    .map(([name, logprob]) => ({ tokenId: idOfName(read, name), logprob: read.number(logprob, "a logprob") }))
    .filter(({ logprob }) => logprob > IMPOSSIBLE);
}

function endOf(read: AnswerReader, { finish_reason: reason }: Fields): ServerChunk["end"] {
  if (reason === null || reason === undefined) return undefined;
  if (reason === "stop" || reason === "length" || reason === "abort") return reason;
  throw read.broken("finish_reason", '"stop", "length" or "abort"', reason);
}

/** Present with `--enable-prompt-tokens-details`. */
function cachedOf(usage: unknown): number | undefined {
  const details = (usage as Fields | null | undefined)?.prompt_tokens_details as Fields | null | undefined;
  const cached = details?.cached_tokens;
  return typeof cached === "number" ? cached : undefined;
}
