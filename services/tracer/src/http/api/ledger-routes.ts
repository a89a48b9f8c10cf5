/**
 * What the ledger says of trained tokens. The trainer keeps it, and is asked for each answer:
 *
 *   GET /api/runs/:run/steps/:step/gradient          what made the gradient of a step
 *   GET /api/runs/:run/rollouts/:slot/tokens         the trained tokens of a rollout, from their advantage to the gradient
 *
 * The answer is 404 for what is not recorded, with the reason, and 503 where no trainer answers.
 */

import { parseJson } from "@hone/core";
import type { LedgerReply } from "@hone/proto-gen/ledger";
import { errorBody } from "@hone/service-kit";
import type { Context, Hono } from "hono";
import { z } from "zod";
import type { TracerStore } from "../../domain/ports.ts";
import { type AskLedger, tokenFiguresOf } from "../../domain/token-figures.ts";
import type { TokenTexts } from "./token-texts.ts";
import { parseParameters, slotParameters, stepParameters } from "./validate-query.ts";

export interface LedgerRoutesOptions {
  readonly store: Pick<TracerStore, "readRun">;
  readonly tokenTexts: Pick<TokenTexts, "of">;
  readonly askLedger: AskLedger;
}

/** `orNone`: an answer without tokens takes the place of 404 and 503. */
const tokensQuery = z.object({ orNone: z.literal("1").optional() });
const gradientSchema = z.looseObject({ pull: z.number() });

export function addLedgerRoutes(app: Hono, { store, tokenTexts, askLedger }: LedgerRoutesOptions): void {
  app.get("/runs/:run/steps/:step/gradient", async (c) => {
    const { run, step } = parseParameters(stepParameters, c.req.param());
    const reply = await askLedger(run, { kind: "gradient", step });
    const problem = problemOf(c, reply);
    if (problem !== undefined) return problem;
    return c.json({ runId: run, step, ...gradientOf(reply!) });
  });

  app.get("/runs/:run/rollouts/:slot/tokens", async (c) => {
    const { run, slot } = parseParameters(slotParameters, c.req.param());
    const reply = await askLedger(run, { kind: "tokens", slot });
    const { orNone } = parseParameters(tokensQuery, c.req.query());
    const problem = problemOf(c, reply);
    if (problem !== undefined || reply?.tokens === undefined) {
      // For who looks at the rollout anyway, as the page does: it is no failure that nothing is recorded.
      return orNone === undefined ? (problem ?? unanswered(c)) : c.json({ runId: run, slot, tokens: [] });
    }
    const { tokens } = reply;
    const [ofStep, owner] = await Promise.all([
      askLedger(run, { kind: "gradient", step: tokens.version }),
      store.readRun(run),
    ]);
    const texts = await tokenTexts.of(owner?.configJson ?? null);
    const pull = ofStep === undefined || ofStep.gradientJson === "" ? 0 : gradientOf(ofStep).pull;
    return c.json({ runId: run, ...tokenFiguresOf(tokens, pull, texts.textOf) });
  });
}

function gradientOf({ gradientJson }: LedgerReply): z.output<typeof gradientSchema> {
  return gradientSchema.parse(parseJson(gradientJson));
}

/** The answer where the trainer has nothing, or does not answer. */
function problemOf(c: Context, reply: LedgerReply | undefined): Response | undefined {
  if (reply === undefined) return unanswered(c);
  const reason = reply.error || reply.absence;
  return reason === "" ? undefined : c.json(errorBody("NOT_RECORDED", reason), 404);
}

function unanswered(c: Context): Response {
  const text = "no trainer answers, which keeps the ledger: hone status shows the services";
  return c.json(errorBody("NO_TRAINER", text), 503);
}
