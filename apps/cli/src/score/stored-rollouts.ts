/** Reads the rollouts that the tracer keeps, in the form that judges take. */

import { Outcome } from "@hone/core";
import { judgedRowOf } from "@hone/judge/scoring";
import { FinishReason } from "@hone/rl";
import { z } from "zod";
import { UsageError } from "../errors.ts";
import { askTracer, type TracerPlace } from "../stack/ask-tracer.ts";
import type { Scorable } from "./score-all.ts";

/** Which rollouts to read, and from where. */
export interface StoredRolloutsOptions extends TracerPlace {
  readonly runId: string;
  /** Absent = all. */
  readonly split?: string | undefined;
  readonly step?: string | undefined;
}

/** A rollout with its reward in the run. */
export interface StoredRollout {
  readonly slot: string;
  readonly reward: number | null;
}

const PAGE = "200";

const jsonObject = z.record(z.string(), z.unknown());
const listSchema = z.object({
  rollouts: z.array(z.object({ slot: z.string(), outcome: z.enum(Outcome), reward: z.number().nullable() })),
  nextBeforeId: z.union([z.string(), z.number()]).nullable(),
});
const rolloutSchema = z.object({
  outcome: z.enum(Outcome),
  turns: z.array(
    z.object({
      promptText: z.string(),
      responseText: z.string(),
      finishReason: z.enum(FinishReason),
      reward: z.number().nullable(),
      info: z.unknown(),
    }),
  ),
  environmentReturn: z.number(),
  // Absent in the answers of earlier releases.
  roleRewards: z.record(z.string(), z.number()).default({}),
  metadata: z.unknown(),
  task: z.object({ environment: z.string(), row: z.unknown() }),
});

/** Yields rollouts, the newest first. @throws {UsageError} when the tracer does not answer or does not know the run. */
export async function* storedRollouts(
  options: StoredRolloutsOptions,
): AsyncGenerator<Scorable<StoredRollout>> {
  const { runId, split, step } = options;
  const base = `/api/runs/${encodeURIComponent(runId)}`;
  await ask(options, base, z.unknown());
  const query = new URLSearchParams({
    limit: PAGE,
    ...(split !== undefined && { split }),
    ...(step !== undefined && { step }),
  });
  for (;;) {
    const page = await ask(options, `${base}/rollouts?${query}`, listSchema);
    for (const { slot, reward } of page.rollouts) {
      const stored = await ask(options, `${base}/rollouts/${slot}`, rolloutSchema);
      yield { key: { slot, reward }, episode: episodeOf(stored) };
    }
    if (page.nextBeforeId === null) return;
    query.set("before", String(page.nextBeforeId));
  }
}

function episodeOf(stored: z.output<typeof rolloutSchema>): Scorable<StoredRollout>["episode"] {
  const { outcome, environmentReturn, roleRewards, turns, metadata, task } = stored;
  const row = jsonObject.safeParse(task.row);
  return {
    outcome,
    environmentReturn,
    roleRewards,
    turns: turns.map((turn) => ({
      ...turn,
      reward: turn.reward ?? undefined,
      info: jsonObject.safeParse(turn.info).data ?? {},
    })),
    row: task.environment === "" && row.success ? judgedRowOf(row.data) : undefined,
    metadata: jsonObject.safeParse(metadata).data ?? {},
  };
}

async function ask<Answer>(
  options: StoredRolloutsOptions,
  path: string,
  schema: z.ZodType<Answer>,
): Promise<Answer> {
  const answer = await askTracer(options, path, schema);
  if (answer.kind === "found") return answer.value;
  throw new UsageError(`the tracer has no run ${options.runId}; hone status shows the runs`);
}
