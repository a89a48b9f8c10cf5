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

/** `orNone`: an answer that holds nothing takes the place of 404 and 503, for who looks at the step or rollout anyway. */
const noneQuery = z.object({ orNone: z.literal("1").optional() });
const gradientSchema = z.looseObject({
  policy: z.string(),
  pull: z.number(),
  topTokens: z.array(z.looseObject({ tokenId: z.number() })),
});

export function addLedgerRoutes(app: Hono, { store, tokenTexts, askLedger }: LedgerRoutesOptions): void {
  const textsOf = async (run: string) => tokenTexts.of((await store.readRun(run))?.configJson ?? null);

  app.get("/runs/:run/steps/:step/gradient", async (c) => {
    const { run, step } = parseParameters(stepParameters, c.req.param());
    const reply = await askLedger(run, { kind: "gradient", step });
    const { orNone } = parseParameters(noneQuery, c.req.query());
    const problem = problemOf(c, reply);
    if (problem !== undefined)
      return orNone === undefined ? problem : c.json({ runId: run, step, policies: [] });
    const { textOf } = await textsOf(run);
    const policies = gradientsOf(reply!).map((gradient) => ({
      ...gradient,
      policy: gradient.policy || null,
      topTokens: gradient.topTokens.map((token) => ({ ...token, text: textOf(token.tokenId) })),
    }));
    return c.json({ runId: run, step, policies });
  });

  app.get("/runs/:run/rollouts/:slot/tokens", async (c) => {
    const { run, slot } = parseParameters(slotParameters, c.req.param());
    const reply = await askLedger(run, { kind: "tokens", slot });
    const { orNone } = parseParameters(noneQuery, c.req.query());
    const problem = problemOf(c, reply);
    const records = reply?.records ?? [];
    // The parts of a rollout are trained by one step.
    const [first] = records;
    if (first === undefined) {
      if (orNone === undefined) return problem ?? unanswered(c);
      return c.json({ runId: run, slot, step: null, parts: [] });
    }
    const [ofStep, { textOf }] = await Promise.all([
      askLedger(run, { kind: "gradient", step: first.version }),
      textsOf(run),
    ]);
    const gradients = ofStep === undefined ? [] : gradientsOf(ofStep);
    const parts = records.map((record) => {
      const pull = gradients.find(({ policy }) => policy === record.policy)?.pull ?? 0;
      return tokenFiguresOf(record, pull, textOf);
    });
    return c.json({ runId: run, slot, step: first.version, parts });
  });
}

/** One for each policy that learnt. */
function gradientsOf({ gradientsJson }: LedgerReply): z.output<typeof gradientSchema>[] {
  return gradientsJson.map((text) => gradientSchema.parse(parseJson(text)));
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
