/** Reads the judgement of a user's own function or server. */

import { z } from "zod";
import type { Judgement } from "./judge.ts";

const figure = z.union([z.number(), z.boolean().transform(Number)]);

const judgementSchema = z.union([
  figure.transform((score) => ({ score })),
  z.looseObject({
    score: figure,
    turns: z
      .array(
        z.union([
          z.tuple([z.int().min(0), z.number()]),
          z.strictObject({ turn: z.int().min(0), value: z.number() }),
        ]),
      )
      .optional(),
  }),
]);

/**
 * Reads a number, or `{ score, turns: [[turn, value], …], reason, …metrics }`. Further entries that are neither numbers nor
 * booleans are ignored.
 * @throws {TypeError} for anything else.
 */
export function readJudgement(value: unknown): Judgement {
  const parsed = judgementSchema.safeParse(value);
  if (!parsed.success) {
    throw new TypeError(
      `a score must be a number or { score, …metrics }, but it is ${(JSON.stringify(value) ?? String(value)).slice(0, 200)}`,
    );
  }
  const { score, turns = [], ...rest } = { turns: undefined, ...parsed.data };
  const figures = Object.entries(rest).flatMap(([name, each]): [string, number][] =>
    typeof each === "number" || typeof each === "boolean" ? [[name, Number(each)]] : [],
  );
  const { reason } = rest as { readonly reason?: unknown };
  return {
    value: score,
    metrics: Object.fromEntries(figures),
    turnRewards: turns.map((each) => (Array.isArray(each) ? { turn: each[0], value: each[1] } : each)),
    ...(typeof reason === "string" && { reason }),
  };
}
