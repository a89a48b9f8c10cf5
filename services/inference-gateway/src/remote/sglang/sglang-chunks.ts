/**
 * Reads the answers of SGLang's `/generate` to one call, whole or in chunks.
 *
 * Chunks hold all tokens so far, or with `--incremental-streaming-output` the new ones; `completion_tokens` shows which.
 */

import { ServerGoneError, ServerRefusedError } from "../../domain/errors.ts";
import type { TokenLogprob } from "../../domain/inference-engine.ts";
import type { LabelSpan, ServerChunk } from "../engine-server.ts";
import { AnswerReader, type Fields } from "../http/fields.ts";
import { messageOf } from "../http/http-client.ts";

export class SglangChunks {
  readonly #server: string;
  readonly #tellsLabel: boolean;
  readonly #read: AnswerReader;
  #seen = 0;

  /** @param tellsLabel whether its labels are those of the weights that it was given. */
  constructor(server: string, tellsLabel: boolean) {
    this.#server = server;
    this.#tellsLabel = tellsLabel;
    this.#read = new AnswerReader(server, "generate");
  }

  /** @returns the new tokens. @throws {ServerGoneError | ServerRefusedError} when the event reports a failure. */
  read(event: unknown): ServerChunk {
    const read = this.#read;
    const fields = read.fields(event, "an answer");
    if (fields.error !== undefined && fields.error !== null) {
      throw new ServerRefusedError(this.#server, "generate", 500, messageOf(event));
    }
    const meta = read.fields(fields.meta_info, "meta_info");
    const end = this.#endOf(meta);
    // A call that is aborted before its first token has no logprobs at all.
    const triples = read.list(meta.output_token_logprobs ?? [], "output_token_logprobs");
    const total = read.number(meta.completion_tokens ?? this.#seen + triples.length, "completion_tokens");
    const count = end === "abort" ? Math.min(triples.length, total - this.#seen) : total - this.#seen;
    if (count < 0 || triples.length < count) {
      throw read.broken("output_token_logprobs", `a list of at least ${count}`, triples.length);
    }
    this.#seen += count;
    const made = triples.slice(triples.length - count).map((triple) => this.#tokenOf(triple));
    const tops = meta.output_top_logprobs;
    const labels = this.#tellsLabel ? this.#labelsOf(meta) : undefined;
    const cached = meta.cached_tokens;
    return {
      tokenIds: made.map(({ tokenId }) => tokenId),
      logprobs: made.map(({ logprob }) => logprob),
      ...(Array.isArray(tops) && {
        topLogprobs: tops.slice(tops.length - count).map((top) => this.#topOf(top)),
      }),
      ...(end !== undefined && { end }),
      ...(labels !== undefined && { labels }),
      ...(typeof cached === "number" && { cachedTokens: cached }),
    };
  }

  /** `[logprob, id, text or null]` */
  #tokenOf(triple: unknown): TokenLogprob {
    const [logprob, id] = this.#read.list(triple, "a logprob");
    return { tokenId: this.#read.id(id, "a token id"), logprob: this.#read.number(logprob, "a logprob") };
  }

  #topOf(top: unknown): TokenLogprob[] {
    if (top === null) return [];
    return this.#read.list(top, "output_top_logprobs").map((triple) => this.#tokenOf(triple));
  }

  #endOf({ finish_reason: reason }: Fields): ServerChunk["end"] {
    if (reason === null || reason === undefined) return undefined;
    const { type, status_code: status, message } = this.#read.fields(reason, "finish_reason");
    if (type === "abort" && typeof status === "number") {
      const text = messageOf(message);
      if (status >= 500) throw new ServerGoneError(this.#server, `status ${status}, ${text}`);
      throw new ServerRefusedError(this.#server, "generate", status, text);
    }
    if (type === "stop" || type === "length" || type === "abort") return type;
    throw this.#read.broken("finish_reason", 'of type "stop", "length" or "abort"', reason);
  }

  /** Newer releases give the label of each span of tokens, older ones only that of the last token. */
  #labelsOf(meta: Fields): LabelSpan[] | undefined {
    const read = this.#read;
    if (Array.isArray(meta.weight_versions)) {
      return meta.weight_versions.map((span) => {
        const { version, start, end } = read.fields(span, "weight_versions");
        const tokenCount = read.number(end, "end") - read.number(start, "start");
        return { label: read.text(version, "version"), tokenCount };
      });
    }
    if (typeof meta.weight_version !== "string") return undefined;
    return [{ label: meta.weight_version, tokenCount: this.#seen }];
  }
}
