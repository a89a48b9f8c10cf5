/** Anthropic's messages API: POST /v1/messages. */

import { unreachable } from "@hone/core";
import { parseBody } from "@hone/service-kit";
import {
  ReplyFinish,
  type ReplyUsage,
  type SessionFailure,
  type SessionReply,
} from "../../domain/sessions/session-call.ts";
import type { Dialect, ReplyHead, ReplyWriter, ServerSentEvent } from "./dialect.ts";
import { messagesSchema, requestOf } from "./messages-request.ts";
import { demandsBody } from "./parameters.ts";
import { argumentsOfJson } from "./tool-arguments.ts";

export const MESSAGES: Dialect = {
  path: "/v1/messages",
  parse(body) {
    const asked = parseBody(messagesSchema, body);
    return { request: requestOf(asked), writer: (head) => new MessageWriter(head, asked.model) };
  },
  failureBody,
};

class MessageWriter implements ReplyWriter {
  readonly heartbeat = event("ping");
  readonly #shared: object;
  /** Number of closed blocks, which is the index of the open one. */
  #blocks = 0;
  #isTextOpen = false;

  constructor({ id }: ReplyHead, model: string) {
    this.#shared = { id: `msg_${id}`, type: "message", role: "assistant", model, container: null };
  }

  whole(reply: SessionReply): object {
    return {
      ...this.#shared,
      content: [
        ...(reply.text === "" ? [] : [textBlock(reply.text)]),
        ...reply.calls.map(({ id, name, argumentsJson }) =>
          toolBlock(id, name, argumentsOfJson(argumentsJson, "input")),
        ),
      ],
      ...endOf(reply),
      usage: { ...usageBody(reply.usage), ...UNUSED_USAGE },
      ...demandsBody(reply),
    };
  }

  events(told: Parameters<ReplyWriter["events"]>[0]): readonly ServerSentEvent[] {
    const index = this.#blocks;
    switch (told.kind) {
      case "begin": {
        const usage = usageBody({ inputTokens: told.inputTokens, cachedTokens: 0, outputTokens: 0 });
        const message = {
          ...this.#shared,
          content: [],
          stop_reason: null,
          stop_sequence: null,
          stop_details: null,
          usage: { ...usage, ...UNUSED_USAGE },
        };
        return [event("message_start", { message }), this.heartbeat];
      }
      case "text": {
        const delta = event("content_block_delta", {
          index,
          delta: { type: "text_delta", text: told.text },
        });
        if (this.#isTextOpen) return [delta];
        this.#isTextOpen = true;
        return [event("content_block_start", { index, content_block: textBlock("") }), delta];
      }
      case "call_begin": {
        const closed = this.#closeText();
        const block = toolBlock(told.id, told.name, {});
        return [...closed, event("content_block_start", { index: this.#blocks, content_block: block })];
      }
      case "call_arguments": {
        const delta = { type: "input_json_delta", partial_json: told.json };
        return [event("content_block_delta", { index, delta })];
      }
      case "call_end":
        return [this.#closeBlock()];
      case "end":
        return [
          ...this.#closeText(),
          event("message_delta", {
            delta: { ...endOf(told.reply), container: null },
            usage: usageBody(told.reply.usage),
            ...demandsBody(told.reply),
          }),
          event("message_stop"),
        ];
      default:
        return unreachable(told);
    }
  }

  failure(failure: SessionFailure): readonly ServerSentEvent[] {
    return [event("error", failureBody(failure))];
  }

  #closeText(): ServerSentEvent[] {
    if (!this.#isTextOpen) return [];
    this.#isTextOpen = false;
    return [this.#closeBlock()];
  }

  #closeBlock(): ServerSentEvent {
    return event("content_block_stop", { index: this.#blocks++ });
  }
}

function event(type: string, data: object = {}): ServerSentEvent {
  return { event: type, data: JSON.stringify({ type, ...data }) };
}

function textBlock(text: string) {
  return { type: "text", text, citations: null };
}

function toolBlock(id: string, name: string, input: object) {
  return { type: "tool_use", id, name, input, caller: { type: "direct" } };
}

function endOf({ finish, stopText }: SessionReply) {
  return { stop_reason: STOP_REASONS[finish], stop_sequence: stopText ?? null, stop_details: null };
}

const STOP_REASONS: Readonly<Record<ReplyFinish, string>> = {
  [ReplyFinish.stop]: "end_turn",
  [ReplyFinish.stopText]: "stop_sequence",
  [ReplyFinish.toolCalls]: "tool_use",
  [ReplyFinish.length]: "max_tokens",
};

/** In this API `input_tokens` does not include cached tokens. */
function usageBody({ inputTokens, cachedTokens, outputTokens }: ReplyUsage) {
  return {
    input_tokens: inputTokens - cachedTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cachedTokens,
    output_tokens: outputTokens,
    output_tokens_details: null,
    server_tool_use: null,
  };
}

const UNUSED_USAGE = { cache_creation: null, inference_geo: null, service_tier: null, speed: null };

const FAILURE_TYPES: Readonly<Record<SessionFailure["status"], string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  409: "invalid_request_error",
  413: "invalid_request_error",
  429: "rate_limit_error",
  500: "api_error",
  503: "overloaded_error",
  504: "timeout_error",
};

/** `param` and `code` are additions to the keys of this API. */
function failureBody({ status, message, param, code }: SessionFailure) {
  const error = { type: FAILURE_TYPES[status], message, param: param ?? null, code: code ?? null };
  return { type: "error", error, request_id: null };
}
