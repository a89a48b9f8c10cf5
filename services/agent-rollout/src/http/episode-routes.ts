/**
 * Episodes for clients anywhere (docs/swarm.md):
 *
 *   GET  /runs                                                        the runs of which an episode waits
 *   POST /runs/<run>/episodes     { "claim": "…", "waitMs": 20000 }   begins an episode; 204 = none waits
 *   POST /episodes/<id>/end       { "reward": 1, … }                  ends it
 *   POST /episodes/<id>/abort     { "reason": "…" }                   gives it back
 *   POST /episodes/<id>/heartbeat {}                                  says that the client is still there
 *
 * X1: The operator's key begins episodes, and nothing else. What was begun takes the episode's own key, so no client ends
 *     another's episode, and a session's key does neither.
 * X2: A request that is refused changes nothing, and its answer has a code for programs.
 * X3: Keys and claims are neither logged nor repeated in answers.
 */

import { createHash } from "node:crypto";
import { pause, RetryableError, secretCheck } from "@hone/core";
import { ApiRequestError, bearerToken, errorBody, parseBody } from "@hone/service-kit";
import type { Logger } from "@hone/telemetry";
import { type Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { z } from "zod";
import { MAX_RESULT_BYTES } from "../domain/agents/outside/outside-task.ts";
import { NoSuchTurnError, SessionOverError } from "../domain/sessions/errors.ts";
import type { EpisodePool } from "../domain/swarm/episode-pool.ts";
import {
  EpisodeEndedError,
  EpisodeOver,
  EpisodeOverError,
  TooManyWaitingError,
  UnknownEpisodeError,
} from "../domain/swarm/errors.ts";
import type { EpisodeReport, LentEpisode, Settlement } from "../domain/swarm/lent-episode.ts";

export interface EpisodeRoutesOptions {
  readonly episodes: EpisodePool;
  /** Key with which clients begin episodes; undefined = nobody may. */
  readonly swarmKey: string | undefined;
  readonly stateOf: (runId: string) => "active" | "ended" | "unknown";
  readonly logger: Logger;
}

/** Below the time after which proxies usually cut a silent connection, which is a minute. */
const MAX_WAIT_MS = 30_000;
const DEFAULT_WAIT_MS = 20_000;
/** How long a client waits for the answer to its report; then it asks again. */
const MAX_STORE_WAIT_MS = 30_000;
const MAX_SMALL_BODY_BYTES = 16_384;
const MAX_REASON_CHARACTERS = 2_000;
const MAX_REWARDS = 10_000;
const MAX_ROLE_CHARACTERS = 64;
/** After how many seconds a client should try again. */
const RETRY_AFTER_S = "1";

const beginSchema = z.strictObject({
  /** Whoever knows the claim gets the episode's keys, so it is as long as one that nobody guesses. */
  claim: z.string().regex(/^[A-Za-z0-9_-]{16,128}$/, "16 to 128 letters, digits, _ and -, such as a UUID"),
  waitMs: z.number().int().min(0).max(MAX_WAIT_MS).default(DEFAULT_WAIT_MS),
});

const endSchema = z
  .strictObject({
    reward: z.number().optional(),
    rewards: z
      .array(
        z.union([
          z.strictObject({ value: z.number(), turn: z.number().int().min(0) }),
          z.strictObject({ value: z.number(), role: z.string().min(1).max(MAX_ROLE_CHARACTERS) }),
        ]),
      )
      .max(MAX_REWARDS)
      .default([]),
    outcome: z.enum(["completed", "truncated", "agent_failed"]).default("completed"),
    reason: z.string().max(MAX_REASON_CHARACTERS).default(""),
    metrics: z.record(z.string(), z.number()).default({}),
    metadata: z.record(z.string(), z.unknown()).default({}),
  })
  .transform(({ reward, rewards, ...report }): EpisodeReport => {
    const last = reward === undefined ? [] : [{ value: reward }];
    return { ...report, rewards: [...rewards, ...last] };
  });

const abortSchema = z.strictObject({ reason: z.string().max(MAX_REASON_CHARACTERS).default("") });
const heartbeatSchema = z.strictObject({});

export function episodeRoutes(options: EpisodeRoutesOptions): Hono {
  const { episodes, swarmKey } = options;
  const isSwarmKey = swarmKey === undefined ? undefined : secretCheck(swarmKey);
  const app = new Hono();
  app.notFound((c) => c.json(errorBody("not_found", `there is no route ${c.req.method} ${c.req.path}`), 404));
  app.onError((error, c) => refuse(c, error, options));
  const small = bodyLimit({
    maxSize: MAX_SMALL_BODY_BYTES,
    onError: (c) => tooLarge(c, MAX_SMALL_BODY_BYTES),
  });
  const large = bodyLimit({ maxSize: MAX_RESULT_BYTES, onError: (c) => tooLarge(c, MAX_RESULT_BYTES) });

  app.get("/runs", (c) => {
    checkSwarmKey(c, isSwarmKey);
    return c.json({ runs: episodes.waitingRuns() });
  });

  app.post("/runs/:run/episodes", small, async (c) => {
    checkSwarmKey(c, isSwarmKey);
    const run = c.req.param("run");
    const { claim, waitMs } = parseBody(beginSchema, await c.req.text());
    checkRun(run, options);
    const episode = await episodes.begin(run, claim, { waitMs, signal: c.req.raw.signal });
    if (episode !== undefined) return c.json(episode.facts());
    checkRun(run, options);
    return c.body(null, 204);
  });

  app.post("/episodes/:id/end", large, async (c) => {
    const episode = episodeOf(c, episodes);
    const text = await c.req.text();
    const report = parseBody(endSchema, text);
    return answerEnd(c, episode.end(report, createHash("sha256").update(text).digest("base64")));
  });

  app.post("/episodes/:id/abort", small, async (c) => {
    const episode = episodeOf(c, episodes);
    episode.abort(parseBody(abortSchema, await bodyOf(c)).reason);
    return c.json({ aborted: true });
  });

  app.post("/episodes/:id/heartbeat", small, async (c) => {
    const episode = episodeOf(c, episodes);
    parseBody(heartbeatSchema, await bodyOf(c));
    return c.json(episode.renew());
  });
  return app;
}

/** X1 */
function checkSwarmKey(c: Context, isSwarmKey: ((given: string) => boolean) | undefined): void {
  if (isSwarmKey === undefined) {
    throw new ApiRequestError("this service lends no episodes; set HONE_SWARM_KEY of agent-rollout", {
      status: 403,
      apiCode: "swarm_off",
    });
  }
  const given = credentialOf(c);
  if (given === undefined || !isSwarmKey(given)) throw wrongKey(given, "HONE_SWARM_KEY of agent-rollout");
}

/** X1 */
function episodeOf(c: Context, episodes: EpisodePool): LentEpisode {
  const episode = episodes.find(c.req.param("id") ?? "");
  const given = credentialOf(c);
  if (given === undefined || !episode.isKey(given)) throw wrongKey(given, "the episode's key");
  return episode;
}

function credentialOf(c: Context): string | undefined {
  return bearerToken(c.req.header("authorization")) ?? c.req.header("x-api-key");
}

function wrongKey(given: string | undefined, wanted: string): ApiRequestError {
  const found = given === undefined ? "has no credential" : "has a wrong credential";
  return new ApiRequestError(`the request ${found}; send ${wanted} as a bearer token or as x-api-key`, {
    status: 401,
    apiCode: "invalid_api_key",
  });
}

function checkRun(run: string, { stateOf }: EpisodeRoutesOptions): void {
  const state = stateOf(run);
  if (state === "ended")
    throw new EpisodeOverError(EpisodeOver.runOver, `the run ${run.slice(0, 64)} is over`);
  if (state === "active") return;
  throw new ApiRequestError(
    `the run ${JSON.stringify(run.slice(0, 64))} is not known; give the id that \`hone status\` shows`,
    { status: 404, apiCode: "unknown_run" },
  );
}

/** An empty body means the defaults. */
async function bodyOf(c: Context): Promise<string> {
  const text = await c.req.text();
  return text === "" ? "{}" : text;
}

async function answerEnd(c: Context, settling: Promise<Settlement>): Promise<Response> {
  const waited = new AbortController();
  try {
    const settlement = await Promise.race([settling, pause(MAX_STORE_WAIT_MS, waited.signal)]);
    if (settlement?.kind === "over") throw settlement.error;
    if (settlement?.kind === "stored") {
      return c.json({ stored: true, outcome: settlement.outcome, reward: settlement.reward });
    }
  } finally {
    waited.abort();
  }
  c.header("retry-after", RETRY_AFTER_S);
  const message = "the report is taken, and its episode is not stored yet; send the same report again";
  return c.json(errorBody("not_stored_yet", message), 503);
}

function tooLarge(c: Context, maxBytes: number): Response {
  // The connection is closed, as the rest of the body would be read as the next request.
  c.header("connection", "close");
  return c.json(errorBody("too_large", `the body has more than ${maxBytes} bytes, which is the limit`), 413);
}

/** X2 */
function refuse(c: Context, error: unknown, { logger }: EpisodeRoutesOptions): Response {
  if (error instanceof ApiRequestError)
    return c.json(errorBody(error.apiCode ?? "bad_request", error.message), error.status);
  if (error instanceof EpisodeOverError) return c.json(errorBody(error.why, error.message), 410);
  if (error instanceof EpisodeEndedError) return c.json(errorBody("already_ended", error.message), 409);
  if (error instanceof UnknownEpisodeError) return c.json(errorBody("unknown_episode", error.message), 404);
  if (error instanceof NoSuchTurnError) return c.json(errorBody("no_such_turn", error.message), 400);
  if (error instanceof SessionOverError) return c.json(errorBody("session_over", error.message), 410);
  if (error instanceof TooManyWaitingError) {
    c.header("retry-after", RETRY_AFTER_S);
    return c.json(errorBody("too_many_waiting", error.message), 429);
  }
  if (error instanceof RetryableError) {
    c.header("retry-after", RETRY_AFTER_S);
    return c.json(errorBody("unavailable", error.message), 503);
  }
  // The path holds an id and no key (X3).
  if (!c.req.raw.signal.aborted) logger.error("a request for an episode failed", { path: c.req.path, error });
  return c.json(errorBody("internal", "the service failed; its log says why"), 500);
}
