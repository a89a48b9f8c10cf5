/**
 * What people do with runs from the page; the requests on the bus are those of the command line.
 *
 *   GET  /api/access                                 whether this reader may change anything
 *   POST /api/runs/:run/control                      { action: pause | resume | cancel }
 *   GET  /api/runs/:run/waiting                      rollouts that wait for rewards
 *   GET  /api/runs/:run/waiting/:slot                one of them, as a rollout
 *   POST /api/runs/:run/waiting/:slot/reward         { value, judge?, reason? }
 *
 * The answer is 409 for what the trainer or the judge refuses, and 503 where they do not answer.
 */

import { createHttpApp, errorBody } from "@hone/service-kit";
import type { Logger } from "@hone/telemetry";
import type { Context, Hono } from "hono";
import { z } from "zod";
import { type PersonsActions, RUN_ACTIONS } from "../../domain/people/persons-actions.ts";
import type { TracerStore } from "../../domain/ports.ts";
import { rolloutViewOf } from "../../domain/rollout-view.ts";
import { readJson } from "./read-json.ts";
import type { TokenTexts } from "./token-texts.ts";
import { parseParameters, runParameters, slotParameters } from "./validate-query.ts";

/** As the judge has it. */
const MAX_REASON = 2_000;
const MAX_JUDGE = 200;

const control = z.strictObject({ action: z.enum(RUN_ACTIONS) });
const reward = z.strictObject({
  value: z.number(),
  judge: z.string().max(MAX_JUDGE).default(""),
  reason: z.string().max(MAX_REASON).default(""),
});

export interface ActionRoutesOptions {
  readonly actions: PersonsActions;
  readonly store: TracerStore;
  readonly tokenTexts: TokenTexts;
  readonly logger: Logger;
  /** Whether the tracer asks for a token; without one nothing can be changed. */
  readonly hasToken: boolean;
}

export function actionRoutes({ actions, store, tokenTexts, logger, hasToken }: ActionRoutesOptions): Hono {
  const app = createHttpApp(logger);

  app.get("/access", (c) => c.json({ canWrite: hasToken }));

  app.post("/runs/:run/control", async (c) => {
    const { run } = parseParameters(runParameters, c.req.param());
    const { action } = await readJson(c, control);
    const result = await actions.control(run, action);
    logger.info("somebody asked for this from the page", { run, action, result: result.kind });
    return result.kind === "done" ? c.json({ run, action }) : failure(c, result);
  });

  app.get("/runs/:run/waiting", async (c) => {
    const { run } = parseParameters(runParameters, c.req.param());
    return c.json({ waiting: await actions.waiting(run) });
  });

  app.get("/runs/:run/waiting/:slot", async (c) => {
    const { run, slot } = parseParameters(slotParameters, c.req.param());
    const [found, owner] = await Promise.all([actions.waitingEpisode(run, slot), store.readRun(run)]);
    const episode = found?.scored.episode;
    if (found === undefined || episode === undefined) {
      const message = `the rollout ${run}/${slot} does not wait for a reward: it was given, its time is over, or the run has ended`;
      return c.json(errorBody("NOT_WAITING", message), 404);
    }
    const tokens = await tokenTexts.of(owner?.configJson ?? null);
    return c.json({ ...found.waiting, runId: run, ...rolloutViewOf(found.scored, episode, tokens) });
  });

  app.post("/runs/:run/waiting/:slot/reward", async (c) => {
    const { run, slot } = parseParameters(slotParameters, c.req.param());
    const given = await readJson(c, reward);
    const result = await actions.reward({ run, slot, ...given });
    logger.info("somebody gave a reward from the page", { run, slot, result: result.kind });
    return result.kind === "done" ? c.json({ awaited: result.awaited }) : failure(c, result);
  });
  return app;
}

function failure(
  c: Context,
  result:
    | { readonly kind: "refused"; readonly reason: string }
    | { readonly kind: "silent"; readonly who: string },
): Response {
  if (result.kind === "refused") return c.json(errorBody("REFUSED", result.reason), 409);
  const message = `${result.who} does not answer, so it is not known whether this was done; try again, which does no harm`;
  return c.json(errorBody("NO_ANSWER", message), 503);
}
