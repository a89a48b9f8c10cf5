/**
 * The sessions of external agents. Below /sessions/<id>, and also below /sessions/<id>/roles/<role>:
 *
 *   POST /v1/…        the paths of the dialects
 *   GET  /v1/models   the roles, or the one model
 *   POST /rewards     { "value": 1, "turn": 0 }; without `turn` the reward is for the latest call, and with `role` in its place it
 *                     is what that role earned. After the attempt has ended:
 *                     { "value": 1, "name": "later", "reason": "…" }, a reward that a judge of the run waits for
 *
 * E1: only the session's own credential gives access, as a bearer token or as `x-api-key`.
 * E2: when a client disconnects, its generation ends and the record says so.
 * E4: a reward after the end of the attempt needs nothing that this process remembers: the id names the rollout, and the judge
 *     knows the digest of the key. So any process of this service takes it.
 * E3: a failure at once has a status of its own; a later failure of a stream is sent in the stream.
 */

import { randomUUID } from "node:crypto";
import { BoundedQueue, delay } from "@hone/core";
import {
  ApiRequestError,
  answerWithEvents,
  bearerToken,
  parseBody,
  type ServerSentEvent,
} from "@hone/service-kit";
import type { Logger } from "@hone/telemetry";
import { type Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { z } from "zod";
import { LaterRewardRefusedError, SessionOverError } from "../domain/sessions/errors.ts";
import type { LaterRewards } from "../domain/sessions/later-rewards.ts";
import type { OpenSession } from "../domain/sessions/open-session.ts";
import type { ReplyEvent, SessionFailure } from "../domain/sessions/session-call.ts";
import type { SessionHost } from "../domain/sessions/session-host.ts";
import { rolloutOfSession } from "../domain/sessions/session-id.ts";
import { CHAT_COMPLETIONS } from "./dialects/chat-completions.ts";
import type { Dialect, ParsedCall, ReplyHead } from "./dialects/dialect.ts";
import { DIALECTS } from "./dialects/dialects.ts";
import { failureOf, INTERNAL_FAILURE } from "./session-failure.ts";

export interface SessionRoutesOptions {
  readonly sessions: SessionHost;
  /** Absent = no rewards are taken after the end of an attempt. */
  readonly laterRewards?: LaterRewards;
  readonly logger: Logger;
}

/** Enough for a context of a million tokens of English. */
const MAX_BODY_BYTES = 4_194_304;
/** A refusal comes within one engine step; a call that waits longer gets the beginning of its stream (E3). */
const MAX_SILENT_START_MS = 1_000;
/** Each sampled token makes at most one event, and answers have far fewer tokens. */
const MAX_QUEUED_EVENTS = 300_000;
/** After how many seconds a client should try a busy session again. */
const RETRY_AFTER_S = "1";

/** Names of judges are no longer. */
const MAX_NAME_CHARACTERS = 128;
const MAX_REASON_CHARACTERS = 2_000;

const rewardSchema = z.strictObject({
  value: z.number(),
  turn: z.number().int().min(0).optional(),
  role: z.string().min(1).max(MAX_NAME_CHARACTERS).optional(),
  name: z.string().min(1).max(MAX_NAME_CHARACTERS).optional(),
  reason: z.string().max(MAX_REASON_CHARACTERS).optional(),
});
type GivenReward = z.output<typeof rewardSchema>;

export function sessionRoutes(options: SessionRoutesOptions): Hono {
  const app = new Hono();
  app.notFound((c) => {
    const message = `there is no route ${c.req.method} ${c.req.path}`;
    return c.json(
      CHAT_COMPLETIONS.failureBody({ status: 404, message, param: undefined, code: undefined }),
      404,
    );
  });
  app.onError((error, c) => refuse(c, CHAT_COMPLETIONS, error, options));
  for (const base of ["/sessions/:id", "/sessions/:id/roles/:role"]) {
    for (const dialect of DIALECTS) {
      const limit = bodyLimit({
        maxSize: MAX_BODY_BYTES,
        onError: (c) => refuse(c, dialect, TOO_LARGE, options),
      });
      app.post(`${base}${dialect.path}`, limit, async (c) => {
        try {
          return await answer(c, dialect, options);
        } catch (error) {
          return refuse(c, dialect, error, options);
        }
      });
    }
    app.get(`${base}/v1/models`, (c) => {
      const { roleNames } = sessionOf(c, options);
      const names = roleNames.length === 0 ? ["policy"] : roleNames;
      return c.json({
        object: "list",
        data: names.map((id) => ({ id, object: "model", created: 0, owned_by: "hone" })),
      });
    });
  }
  const limit = bodyLimit({ maxSize: MAX_BODY_BYTES, onError: () => raise(TOO_LARGE) });
  app.post("/sessions/:id/rewards", limit, async (c) => {
    if (!options.sessions.isOpen(c.req.param("id"))) return giveLater(c, options);
    const session = sessionOf(c, options);
    const { value, turn, role, name, reason } = parseBody(rewardSchema, await c.req.text());
    if (name !== undefined || reason !== undefined) {
      const message = "a reward with a name or a reason is given once the attempt has ended, and it has not";
      throw new LaterRewardRefusedError(message, 409, "session_open");
    }
    if (turn !== undefined && role !== undefined) {
      throw new ApiRequestError("a reward is for a turn or for a role; leave out one of the two", {
        param: "role",
      });
    }
    session.addReward({ value, turn, role });
    return c.json({ total: session.totalReward });
  });
  return app;
}

/** E4 */
async function giveLater(c: Context, { laterRewards }: SessionRoutesOptions): Promise<Response> {
  const id = c.req.param("id") ?? "";
  const rollout = rolloutOfSession(id);
  if (laterRewards === undefined || rollout === undefined) throw new SessionOverError(id);
  if (!(await laterRewards.isAwaitedIn(rollout.runId))) throw new SessionOverError(id);
  const key = credentialOf(c);
  if (key === undefined) throw noCredential("has no credential");
  const { value, turn, role, name, reason }: GivenReward = parseBody(rewardSchema, await c.req.text());
  const of = turn !== undefined ? "turn" : role !== undefined ? "role" : undefined;
  if (of !== undefined) {
    const message = `after the attempt has ended, rewards are those of the whole rollout; leave out ${of}`;
    throw new ApiRequestError(message, { param: of });
  }
  return c.json(await laterRewards.give(id, { ...rollout, key, value, name, reason }));
}

/** E1 */
function sessionOf(c: Context, { sessions }: SessionRoutesOptions): OpenSession {
  const session = sessions.find(c.req.param("id") ?? "");
  const given = credentialOf(c);
  if (given !== undefined && session.isKey(given)) return session;
  throw noCredential(
    given === undefined ? "has no credential" : "has a credential that is not the session's",
  );
}

function credentialOf(c: Context): string | undefined {
  return bearerToken(c.req.header("authorization")) ?? c.req.header("x-api-key");
}

function noCredential(found: string): ApiRequestError {
  return new ApiRequestError(
    `the request ${found}; send the session's key as a bearer token or as x-api-key`,
    { status: 401, apiCode: "invalid_api_key" },
  );
}

async function answer(c: Context, dialect: Dialect, options: SessionRoutesOptions): Promise<Response> {
  const session = sessionOf(c, options);
  const parsed = dialect.parse(await c.req.text(), {
    conversationUpTo: (replyId) => session.conversationUpTo(replyId),
  });
  const head: ReplyHead = {
    id: randomUUID().replaceAll("-", ""),
    created: Math.floor(Date.now() / 1_000),
  };
  const call = { parsed, head, session, role: c.req.param("role") };
  c.header("x-request-id", head.id);
  c.header("request-id", head.id);
  if (parsed.request.isStreamed) return answerInEvents(c, dialect, call, options);
  const { signal } = c.req.raw; // E2
  const [first, ...others] = await session.answer(parsed.request, {
    replyId: head.id,
    role: call.role,
    signal,
  });
  if (first === undefined) throw new TypeError("a call has no answer");
  return c.json(parsed.writer(head).whole(first, ...others));
}

interface Call {
  readonly parsed: ParsedCall;
  readonly head: ReplyHead;
  readonly session: OpenSession;
  readonly role: string | undefined;
}

async function answerInEvents(
  c: Context,
  dialect: Dialect,
  { parsed, head, session, role }: Call,
  options: SessionRoutesOptions,
): Promise<Response> {
  const writer = parsed.writer(head);
  const queue = new BoundedQueue<ServerSentEvent>(MAX_QUEUED_EVENTS);
  const begun = Promise.withResolvers<void>();
  const gone = new AbortController();
  const signal = AbortSignal.any([c.req.raw.signal, gone.signal]); // E2
  const onEvent = (event: ReplyEvent, index: number) => {
    for (const each of writer.events(event, index)) queue.offer(each);
    // Until something is sampled, a failure can still be answered with a status of its own.
    if (event.kind !== "begin") begun.resolve();
  };
  const answering = session
    .answer(parsed.request, { replyId: head.id, role, signal, onEvent })
    .finally(() => queue.close());
  answering.catch(() => undefined); // thrown again below, where the events are read
  const started = new AbortController();
  try {
    const silence = delay(MAX_SILENT_START_MS, { signal: started.signal }).catch(() => undefined);
    await Promise.race([begun.promise, answering, silence]); // E3
  } finally {
    started.abort();
  }
  async function* events(): AsyncGenerator<ServerSentEvent> {
    yield* queue;
    await answering;
  }
  return answerWithEvents(c, {
    events: events(),
    heartbeat: writer.heartbeat,
    onGone: () => gone.abort(),
    onError: (error) => (signal.aborted ? [] : writer.failure(toFailure(c, dialect, error, options))),
  });
}

function refuse(c: Context, dialect: Dialect, error: unknown, options: SessionRoutesOptions): Response {
  const failure = toFailure(c, dialect, error, options);
  // The official clients repeat calls that failed with 408, 409, 429 or 5xx; that only helps with a busy session.
  if (failure.status === 429) c.header("retry-after", RETRY_AFTER_S);
  else c.header("x-should-retry", "false");
  // The connection is closed, as the rest of the body would be read as the next request.
  if (failure.status === 413) c.header("connection", "close");
  return c.json(dialect.failureBody(failure), failure.status);
}

/** Logs an error of this service itself. */
function toFailure(
  c: Context,
  dialect: Dialect,
  error: unknown,
  { logger }: SessionRoutesOptions,
): SessionFailure {
  const failure = failureOf(error);
  if (failure !== undefined) return failure;
  if (!c.req.raw.signal.aborted) logger.error("a call of a session failed", { path: dialect.path, error });
  return INTERNAL_FAILURE;
}

const TOO_LARGE = new ApiRequestError(`the body has more than ${MAX_BODY_BYTES} bytes, which is the limit`, {
  status: 413,
});

function raise(error: Error): never {
  throw error;
}
