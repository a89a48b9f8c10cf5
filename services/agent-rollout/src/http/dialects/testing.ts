/** Answers of a session for tests of the dialects, whole and as the events of a stream. */

import type { ReplyEvent, SessionReply } from "../../domain/sessions/session-call.ts";
import type { Dialect, ServerSentEvent } from "./dialect.ts";

export const HEAD = { id: "a1", created: 1_756_000_000 };
export const NO_HISTORY = { conversationUpTo: () => undefined };

const tokens = { promptIds: [1, 2, 3], tokenIds: [4, 5, 6, 7, 8], logprobs: [] };
const usage = { inputTokens: 9, cachedTokens: 4, outputTokens: 5 };

/** Answers with every reason to end, with and without text and calls. */
export const REPLIES: Readonly<Record<string, SessionReply>> = {
  text: { text: "A lake, “é”.", calls: [], finish: "stop", stopText: undefined, checks: [], usage, tokens },
  "an empty answer": { text: "", calls: [], finish: "stop", stopText: undefined, checks: [], usage, tokens },
  "an answer that is cut off": {
    text: "A la",
    calls: [],
    finish: "length",
    stopText: undefined,
    checks: [],
    usage,
    tokens,
  },
  "an answer that a stop text ended": {
    text: "A ",
    calls: [],
    finish: "stop_text",
    stopText: "lake",
    checks: [],
    usage,
    tokens,
  },
  "two calls": {
    text: "Let me look.",
    calls: [
      { id: "c00000000", name: "search", argumentsJson: '{"q":"lake \\"x\\"","n":2}' },
      { id: "c00000001", name: "now", argumentsJson: "{}" },
    ],
    finish: "tool_calls",
    stopText: undefined,
    checks: [],
    usage,
    tokens,
  },
  "a call alone": {
    text: "",
    calls: [{ id: "c00000000", name: "search", argumentsJson: '{"q":"x"}' }],
    finish: "tool_calls",
    stopText: undefined,
    checks: [],
    usage,
    tokens,
  },
};

/** The events of a streamed answer, with texts and arguments in pieces. */
export function eventsOf(reply: SessionReply): ReplyEvent[] {
  return [
    { kind: "begin", inputTokens: reply.usage.inputTokens },
    ...pieces(reply.text).map((text) => ({ kind: "text" as const, text })),
    ...reply.calls.flatMap(({ id, name, argumentsJson }, index): ReplyEvent[] => [
      { kind: "call_begin", index, id, name },
      ...pieces(argumentsJson).map((json) => ({ kind: "call_arguments" as const, index, json })),
      { kind: "call_end", index },
    ]),
    { kind: "end", reply },
  ];
}

/** A replacement of `fetch` for clients, which answers requests as the session's server does. */
export function fetchOf(
  dialect: Dialect,
  tell: (writer: ReturnType<ReturnType<Dialect["parse"]>["writer"]>, isStreamed: boolean) => object,
): typeof fetch {
  return async (_url, init) => {
    const { request, writer } = dialect.parse(String(init?.body), NO_HISTORY);
    const told = tell(writer(HEAD), request.isStreamed);
    return Array.isArray(told)
      ? new Response(told.map(written).join(""), { headers: { "content-type": "text/event-stream" } })
      : Response.json(told);
  };
}

/** A replacement of `fetch` that answers with a reply, streamed if the request asks for that. */
export function replyingFetch(dialect: Dialect, reply: SessionReply): typeof fetch {
  return fetchOf(dialect, (writer, isStreamed) =>
    isStreamed ? eventsOf(reply).flatMap((event) => writer.events(event)) : writer.whole(reply),
  );
}

function pieces(text: string): string[] {
  return text.match(/[\s\S]{1,3}/g) ?? [];
}

function written({ event, data }: ServerSentEvent): string {
  return `${event === undefined ? "" : `event: ${event}\n`}data: ${data}\n\n`;
}
