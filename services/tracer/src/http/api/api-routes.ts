/**
 * The API of the page: JSON. What changes something is in notes-routes.ts and action-routes.ts.
 *
 *   GET /api/runs                                    runs, newest first, with a small curve each; refused requests
 *   GET /api/runs/:run                               one run with its file and evaluations
 *   GET /api/runs/:run/steps?after=                  metrics of its completed steps, by name
 *   GET /api/runs/:run/steps/:step/timeline          who worked when in a step
 *   GET /api/runs/:run/rollouts?split=&step=&task=&outcome=&minReward=&maxReward=&taskId=&noted=yes
 *           &q=&place=&sort=&order=&before=&offset=&limit=
 *   GET /api/rollouts?…                              the same for the rollouts of all runs
 *   GET /api/runs/:run/cost                          what became of the sampled tokens, by step; the price of an hour
 *   GET /api/compare/tasks?runs=a,b&split=           tasks that several runs played
 *   GET /api/compare/task?runs=a,b&taskId=           the rollouts of one task in these runs
 *   GET /api/runs/:run/rollout-counts                rollouts by split and outcome
 *   GET /api/runs/:run/rollouts/:slot                one rollout: turns, tokens, scores, its group
 *   GET /api/runs/:run/rollouts/:slot/frames         its states one after another, drawn by its environment
 *   GET /api/runs/:run/rollouts/:slot/trace          the spans of its trace
 *   …/steps/:step/gradient, …/rollouts/:slot/tokens  see ledger-routes.ts
 *   GET /api/traces/:trace                           the spans of any trace
 *   GET /api/metrics                                 unit and description of known metrics
 *   GET /api/health                                  which parts answer, and what could not be decoded
 *   GET /api/intake                                  spans accepted, dropped and forwarded since the start
 *
 * The answer is 404 for what was never stored and 410 for what retention removed.
 */

import { fromBinary } from "@bufbuild/protobuf";
import { InvalidInputError, Outcome, Split } from "@hone/core";
import { ScoredEpisodeSchema } from "@hone/proto-gen/rollout";
import { createHttpApp, errorBody } from "@hone/service-kit";
import { type Logger, METRICS } from "@hone/telemetry";
import type { Context, Hono } from "hono";
import { z } from "zod";
import { type AskForFrames, episodeFrames } from "../../domain/episode-frames.ts";
import { traceViewOf } from "../../domain/otlp/trace-view.ts";
import { ROLLOUT_SORTS, type TracerStore } from "../../domain/ports.ts";
import { rolloutViewOf } from "../../domain/rollout-view.ts";
import { jsonObjectOf, MAX_COLUMN } from "../../domain/run-event.ts";
import { excerptFinder } from "../../domain/search/excerpt.ts";
import { TextPlace, textsOf } from "../../domain/search/rollout-texts.ts";
import { searchQueryOf } from "../../domain/search/words.ts";
import { seriesOf } from "../../domain/series.ts";
import { type StackHealth, withOwnersHealth } from "../../domain/stack-health.ts";
import { spanTimesOf } from "../../domain/timeline/span-times.ts";
import { stepTimeline, stepTimes } from "../../domain/timeline/step-timeline.ts";
import type { AskLedger } from "../../domain/token-figures.ts";
import { addLedgerRoutes } from "./ledger-routes.ts";
import type { TokenTexts } from "./token-texts.ts";
import {
  decimal,
  parseParameters,
  rowId,
  runParameters,
  slotParameters,
  stepParameters,
  wholeNumber,
} from "./validate-query.ts";

export interface ApiOptions {
  readonly store: TracerStore;
  readonly tokenTexts: TokenTexts;
  readonly askForFrames: AskForFrames;
  readonly askLedger: AskLedger;
  /** Gives which parts of Hone answer at the moment. */
  readonly health: () => StackHealth;
  /** Gives the totals of the intake, for the operators of this service. */
  readonly intakeCounts: () => Readonly<Record<string, number>>;
  /** Address of Jaeger's UI as a browser reaches it; where it is set, answers link to the same trace there. */
  readonly jaegerUrl: string | undefined;
  /** What an hour of the machines costs; undefined = not known. */
  readonly price: Price | undefined;
  readonly logger: Logger;
}

export interface Price {
  readonly perHour: number;
  /** Of ISO 4217, such as USD. */
  readonly currency: string;
}

const DEFAULT_PAGE = 50;
const MAX_PAGE = 200;

/** Longest query of a search, and longest id of a task. */
const MAX_TEXT = 1_000;
/** Pages of a sorted list end here; a filter leads further than the ten thousandth row. */
const MAX_OFFSET = 10_000;

/** A text of PostgreSQL holds every character but NUL. */
const taskIdParameter = z
  .string()
  .min(1)
  .max(MAX_TEXT)
  .regex(/^[^\0]*$/, "a text without NUL");
const traceParameters = z.object({ trace: z.string().regex(/^[0-9a-f]{32}$/, "32 hexadecimal digits") });
const stepsQuery = z.object({ after: wholeNumber.optional() });
const rolloutsQuery = z.object({
  split: z.enum(Split).optional(),
  step: wholeNumber.optional(),
  task: wholeNumber.optional(),
  outcome: z.enum(Outcome).optional(),
  minReward: decimal.optional(),
  maxReward: decimal.optional(),
  taskId: taskIdParameter.optional(),
  q: z.string().max(MAX_TEXT).optional(),
  place: z.enum(Object.keys(TextPlace) as [keyof typeof TextPlace]).optional(),
  noted: z.literal("yes").optional(),
  sort: z.enum(ROLLOUT_SORTS).optional(),
  order: z.enum(["asc", "desc"]).optional(),
  before: rowId.optional(),
  offset: wholeNumber.refine((value) => value <= MAX_OFFSET, `at most ${MAX_OFFSET}`).optional(),
  limit: wholeNumber.refine((value) => value >= 1 && value <= MAX_PAGE, `1 to ${MAX_PAGE}`).optional(),
});

/** Most runs that are compared. */
const MAX_COMPARED = 8;
const comparedRuns = z
  .string()
  .transform((list) => [...new Set(list.split(","))])
  .pipe(z.array(runParameters.shape.run).min(1).max(MAX_COMPARED));
const compareQuery = z.object({ runs: comparedRuns, split: z.enum(Split).optional() });
const taskQuery = z.object({ runs: comparedRuns, taskId: taskIdParameter });

export function apiRoutes(options: ApiOptions): Hono {
  const { store, tokenTexts, askForFrames, health, intakeCounts, jaegerUrl, price, logger } = options;
  const app = createHttpApp(logger);

  app.get("/runs", async (c) => {
    const [runs, refusals] = await Promise.all([store.readRuns(), store.readRefusals()]);
    const now = health();
    return c.json({ runs: runs.map((run) => withOwnersHealth(run, now)), refusals });
  });

  app.get("/runs/:run", async (c) => {
    const { run } = parseParameters(runParameters, c.req.param());
    const found = await store.readRun(run);
    if (found === undefined) return notFound(c, `run ${run}`);
    const { configJson, ...rest } = withOwnersHealth(found, health());
    return c.json({ ...rest, config: configJson === null ? null : (jsonObjectOf(configJson) ?? null) });
  });

  app.get("/runs/:run/steps", async (c) => {
    const { run } = parseParameters(runParameters, c.req.param());
    const { after = 0 } = parseParameters(stepsQuery, c.req.query());
    const { steps, hasMore } = await store.readSteps(run, after);
    return c.json({ ...seriesOf(steps), hasMore });
  });

  app.get("/runs/:run/steps/:step/timeline", async (c) => {
    const { run, step } = parseParameters(stepParameters, c.req.param());
    const figures = await store.readStep(run, step);
    const times = figures && stepTimes(figures);
    if (figures === undefined || times === undefined)
      return notFound(c, `the times of step ${step} of ${run}`);
    const { pieces, ...rollouts } = await store.readStepSpans(run, step, times.beganAtMs);
    return c.json({ ...stepTimeline(figures, pieces.flatMap(spanTimesOf)), rollouts });
  });

  app.get("/rollouts", async (c) => {
    return c.json(await listAnswer(store, undefined, parseParameters(rolloutsQuery, c.req.query())));
  });

  app.get("/runs/:run/rollouts", async (c) => {
    const { run } = parseParameters(runParameters, c.req.param());
    return c.json(await listAnswer(store, run, parseParameters(rolloutsQuery, c.req.query())));
  });

  app.get("/runs/:run/cost", async (c) => {
    const { run } = parseParameters(runParameters, c.req.param());
    return c.json({ steps: await store.readCost(run), price: price ?? null });
  });

  app.get("/compare/tasks", async (c) => {
    const { runs, split = Split.train } = parseParameters(compareQuery, c.req.query());
    return c.json({ tasks: await store.readCommonTasks(runs, split) });
  });

  app.get("/compare/task", async (c) => {
    const { runs, taskId } = parseParameters(taskQuery, c.req.query());
    return c.json({ rollouts: await store.readTaskRollouts(runs, taskId) });
  });

  app.get("/runs/:run/rollout-counts", async (c) => {
    const { run } = parseParameters(runParameters, c.req.param());
    return c.json({ counts: await store.readRolloutCounts(run) });
  });

  app.get("/runs/:run/rollouts/:slot", async (c) => {
    const { run, slot } = parseParameters(slotParameters, c.req.param());
    const [stored, owner] = await Promise.all([store.readRollout(run, slot), store.readRun(run)]);
    if (stored === undefined) return noRollout(c, store, run, slot);
    const { scored: bytes, spansRemoved: _, ...rest } = stored;
    const scored = fromBinary(ScoredEpisodeSchema, bytes);
    if (scored.episode === undefined) return notFound(c, `the episode of ${run}/${slot}`);
    const texts = await tokenTexts.of(owner?.configJson ?? null);
    const { advantage, figures } = rest;
    const trained = advantage === null ? undefined : { advantage, figures: figures ?? {} };
    return c.json({ ...rest, runId: run, ...rolloutViewOf(scored, scored.episode, texts, trained) });
  });

  app.get("/runs/:run/rollouts/:slot/frames", async (c) => {
    const { run, slot } = parseParameters(slotParameters, c.req.param());
    const stored = await store.readRollout(run, slot);
    if (stored === undefined) return noRollout(c, store, run, slot);
    const { episode } = fromBinary(ScoredEpisodeSchema, stored.scored);
    if (episode === undefined) return notFound(c, `the episode of ${run}/${slot}`);
    return c.json(await episodeFrames(run, episode, askForFrames));
  });

  app.get("/runs/:run/rollouts/:slot/trace", async (c) => {
    const { run, slot } = parseParameters(slotParameters, c.req.param());
    const stored = await store.readRollout(run, slot);
    if (stored === undefined) return noRollout(c, store, run, slot);
    const { traceId, spansRemoved } = stored;
    return traceAnswer(c, store, traceId, jaegerUrl, async () => spansRemoved);
  });

  addLedgerRoutes(app, options);

  app.get("/traces/:trace", async (c) => {
    const { trace } = parseParameters(traceParameters, c.req.param());
    return traceAnswer(c, store, trace, jaegerUrl, () => store.areSpansRemoved());
  });

  app.get("/metrics", (c) => c.json(METRICS));

  app.get("/health", (c) => c.json(health()));

  app.get("/intake", (c) => c.json(intakeCounts()));
  return app;
}

/** One page of a list. Where words are searched, each rollout has the place where they are. */
async function listAnswer(
  store: TracerStore,
  run: string | undefined,
  given: z.output<typeof rolloutsQuery>,
) {
  const { before, limit = DEFAULT_PAGE, q, order, noted, ...filter } = given;
  const words = q === undefined ? undefined : searchQueryOf(q);
  if (q !== undefined && words === undefined)
    throw new InvalidInputError("nothing can be searched: the query has no word that must occur", {
      path: "q",
      allowed: 'words, "several words", -excluded, or',
    });
  const page = await store.readRollouts(run, {
    ...filter,
    words,
    beforeId: before,
    limit,
    isAscending: order === "asc",
    isNoted: noted === "yes",
  });
  const findExcerpt = excerptFinder(q ?? "", filter.place);
  const rollouts = page.rollouts.map(({ scored: bytes, ...row }) => {
    if (bytes === null) return row;
    const scored = fromBinary(ScoredEpisodeSchema, bytes);
    const texts = scored.episode === undefined ? [] : textsOf(scored, scored.episode);
    return { ...row, excerpt: findExcerpt(texts) ?? null };
  });
  return { ...page, rollouts };
}

async function traceAnswer(
  c: Context,
  store: TracerStore,
  traceId: string,
  jaegerUrl: string | undefined,
  areRemoved: () => Promise<boolean>,
): Promise<Response> {
  const view = traceId === "" ? undefined : traceViewOf(traceId, await store.readPieces(traceId));
  if (view !== undefined)
    return c.json({ ...view, jaegerUrl: jaegerUrl === undefined ? "" : `${jaegerUrl}/trace/${traceId}` });
  const what = `spans of trace ${traceId || "(none was recorded)"}`;
  return traceId !== "" && (await areRemoved()) ? gone(c, what) : notFound(c, what);
}

/** The answer for a rollout that is not in the store: it never was, or retention removed the rollouts of its step. */
async function noRollout(c: Context, store: TracerStore, run: string, slot: string): Promise<Response> {
  const [split = "", step = ""] = slot.split(".");
  const isRemoved = Number(step) <= MAX_COLUMN && (await store.areRolloutsRemoved(run, split, Number(step)));
  return isRemoved ? gone(c, `rollout ${run}/${slot}`) : notFound(c, `rollout ${run}/${slot}`);
}

function notFound(c: Context, what: string): Response {
  return c.json(errorBody("NOT_FOUND", `${what} cannot be shown: nothing is stored under this name`), 404);
}

function gone(c: Context, what: string): Response {
  const text = `${what} cannot be shown: it is no longer kept, as the oldest are removed when a limit is reached (HONE_TRACER_MAX_BYTES, HONE_TRACER_MAX_ROLLOUTS, HONE_TRACER_MAX_SPANS)`;
  return c.json(errorBody("NO_LONGER_KEPT", text), 410);
}
