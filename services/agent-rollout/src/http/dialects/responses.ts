/**
 * OpenAI's responses API: POST /v1/responses.
 *
 * A request may continue from an earlier answer of its session (`previous_response_id`). Its own instructions then replace
 * the earlier ones, so an answer's id says whether its conversation begins with instructions.
 */

import { unreachable } from "@hone/core";
import { parseBody } from "@hone/service-kit";
import type { ChatMessage } from "@hone/tokenizer";
import {
  type ReplyCall,
  type ReplyEvent,
  ReplyFinish,
  type ReplyUsage,
  type SessionFailure,
  type SessionReply,
} from "../../domain/sessions/session-call.ts";
import type { Dialect, ParseContext, ReplyHead, ReplyWriter, ServerSentEvent } from "./dialect.ts";
import { openaiFailureBody } from "./openai-failure.ts";
import { demandsBody } from "./parameters.ts";
import {
  type ResponsesRequest,
  refuseUnknownResponse,
  requestOf,
  responsesSchema,
} from "./responses-request.ts";

type Status = "in_progress" | "completed" | "incomplete";

const ID_PREFIX = "resp_";
/** Suffix of the id of an answer whose conversation begins with instructions. */
const INSTRUCTED = "_i";

export const RESPONSES: Dialect = {
  path: "/v1/responses",
  parse(body, context) {
    const asked = parseBody(responsesSchema, body);
    const before = conversationBefore(asked.previous_response_id, context);
    return { request: requestOf(asked, before), writer: (head) => new ResponseWriter(asked, head) };
  },
  failureBody: openaiFailureBody,
};

/** The earlier conversation that the request continues, without instructions. */
function conversationBefore(
  previous: string | undefined,
  { conversationUpTo }: ParseContext,
): readonly ChatMessage[] {
  if (previous === undefined) return [];
  const isInstructed = previous.endsWith(INSTRUCTED);
  const id = previous.slice(ID_PREFIX.length, isInstructed ? -INSTRUCTED.length : undefined);
  const found = previous.startsWith(ID_PREFIX) ? conversationUpTo(id) : undefined;
  if (found === undefined) return refuseUnknownResponse(previous);
  return isInstructed ? found.slice(1) : found;
}

class ResponseWriter implements ReplyWriter {
  readonly #asked: ResponsesRequest;
  readonly #head: ReplyHead;
  #nextNumber = 0;
  /** Number of closed items, which is the index of the open one. */
  #items = 0;
  /** Text of the open message; undefined = no message is open. */
  #text: string | undefined;
  /** The current call, or the last one. */
  #call: ReplyCall = { id: "", name: "", argumentsJson: "" };

  constructor(asked: ResponsesRequest, head: ReplyHead) {
    this.#asked = asked;
    this.#head = head;
  }

  whole(reply: SessionReply): object {
    const status = statusOf(reply);
    const output = [
      ...(reply.text === "" ? [] : [this.#messageItem(status, [textPart(reply.text)])]),
      ...reply.calls.map((call) => callItem(call, "completed")),
    ];
    return {
      ...this.#response(status, output),
      completed_at: status === "completed" ? Math.floor(Date.now() / 1_000) : null,
      incomplete_details: status === "incomplete" ? { reason: "max_output_tokens" } : null,
      usage: usageBody(reply.usage),
      ...demandsBody(reply),
    };
  }

  events(told: ReplyEvent): readonly ServerSentEvent[] {
    switch (told.kind) {
      case "begin": {
        const response = this.#response("in_progress", []);
        return [
          this.#event("response.created", { response }),
          this.#event("response.in_progress", { response }),
        ];
      }
      case "text": {
        const opened = this.#text === undefined ? this.#openText() : [];
        this.#text = (this.#text ?? "") + told.text;
        const delta = { ...this.#textPlace, delta: told.text, logprobs: [] };
        return [...opened, this.#event("response.output_text.delta", delta)];
      }
      case "call_begin": {
        const closed = this.#closeText("completed");
        this.#call = { id: told.id, name: told.name, argumentsJson: "" };
        return [...closed, this.#added(callItem(this.#call, "in_progress"))];
      }
      case "call_arguments": {
        const argumentsJson = this.#call.argumentsJson + told.json;
        this.#call = { ...this.#call, argumentsJson };
        const delta = { ...this.#callPlace, delta: told.json };
        return [this.#event("response.function_call_arguments.delta", delta)];
      }
      case "call_end": {
        const { name, argumentsJson } = this.#call;
        const whole = { ...this.#callPlace, name, arguments: argumentsJson };
        return [
          this.#event("response.function_call_arguments.done", whole),
          this.#done(callItem(this.#call, "completed")),
        ];
      }
      case "end": {
        const status = statusOf(told.reply);
        const closed = this.#closeText(status);
        return [...closed, this.#event(`response.${status}`, { response: this.whole(told.reply) })];
      }
      default:
        return unreachable(told);
    }
  }

  /** Clients throw when they see the key `error`; the other keys are those of the API's documented event. */
  failure(failure: SessionFailure): readonly ServerSentEvent[] {
    const { error } = openaiFailureBody(failure);
    const { message, code, param } = error;
    return [this.#event("error", { message, code, param, error })];
  }

  get #textPlace() {
    return { item_id: this.#messageId, output_index: this.#items, content_index: 0 };
  }

  get #callPlace() {
    return { item_id: callItemId(this.#call), output_index: this.#items };
  }

  get #messageId(): string {
    return `msg_${this.#head.id}`;
  }

  #openText(): ServerSentEvent[] {
    return [
      this.#added(this.#messageItem("in_progress", [])),
      this.#event("response.content_part.added", { ...this.#textPlace, part: textPart("") }),
    ];
  }

  #closeText(status: Status): ServerSentEvent[] {
    const text = this.#text;
    if (text === undefined) return [];
    this.#text = undefined;
    const part = textPart(text);
    return [
      this.#event("response.output_text.done", { ...this.#textPlace, text, logprobs: [] }),
      this.#event("response.content_part.done", { ...this.#textPlace, part }),
      this.#done(this.#messageItem(status, [part])),
    ];
  }

  #added(item: object): ServerSentEvent {
    return this.#event("response.output_item.added", { output_index: this.#items, item });
  }

  #done(item: object): ServerSentEvent {
    return this.#event("response.output_item.done", { output_index: this.#items++, item });
  }

  #event(type: string, data: object): ServerSentEvent {
    return { event: type, data: JSON.stringify({ type, sequence_number: this.#nextNumber++, ...data }) };
  }

  #messageItem(status: Status, content: readonly object[]) {
    return { id: this.#messageId, type: "message", role: "assistant", status, content };
  }

  /** The response object that several events and the whole answer contain. */
  #response(status: Status, output: readonly object[]) {
    const asked = this.#asked;
    return {
      id: `${ID_PREFIX}${this.#head.id}${asked.instructions === undefined ? "" : INSTRUCTED}`,
      object: "response",
      created_at: this.#head.created,
      completed_at: null,
      status,
      model: asked.model,
      output,
      error: null,
      incomplete_details: null,
      instructions: asked.instructions ?? null,
      previous_response_id: asked.previous_response_id ?? null,
      max_output_tokens: asked.max_output_tokens ?? null,
      metadata: asked.metadata ?? {},
      parallel_tool_calls: asked.parallel_tool_calls ?? true,
      store: asked.store ?? true,
      temperature: asked.temperature ?? null,
      top_p: asked.top_p ?? null,
      text: { format: asked.text?.format ?? { type: "text" } },
      tool_choice: asked.tool_choice ?? "auto",
      tools: (asked.tools ?? []).map((tool) => ({ ...tool, strict: tool.strict ?? null })),
      truncation: "disabled",
      usage: null,
    };
  }
}

function statusOf({ finish }: SessionReply): "completed" | "incomplete" {
  return finish === ReplyFinish.length ? "incomplete" : "completed";
}

function textPart(text: string) {
  return { type: "output_text", text, annotations: [], logprobs: [] };
}

function callItemId({ id }: ReplyCall): string {
  return `fc_${id}`;
}

function callItem(call: ReplyCall, status: Status) {
  const { id: call_id, name, argumentsJson } = call;
  return { id: callItemId(call), type: "function_call", call_id, name, arguments: argumentsJson, status };
}

function usageBody({ inputTokens, cachedTokens, outputTokens }: ReplyUsage) {
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: cachedTokens, cache_write_tokens: 0 },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: inputTokens + outputTokens,
  };
}
