/** Reads what became of the tokens that each step's rollouts generated. */

import { Outcome, Split } from "@hone/core";
import { type Database, query, sql } from "@hone/storage";
import type { StepTokens } from "../../domain/ports.ts";
import { READ_DEADLINE_MS } from "../read-deadline.ts";

/** The newest steps; more would take longer than somebody who looks at a run waits. */
const MAX_STEPS = 40;

/**
 * Sums of sampled tokens by the step that asked for the rollout, of the newest steps in order. A group gives no gradient where all of its advantages are 0,
 * or where these are not known, where all of its rewards are equal.
 */
export async function readCost(database: Database, runId: string): Promise<StepTokens[]> {
  return query(
    database,
    async (db) => {
      // Asked first: with the number in its text the next statement is planned by an index, and without by all rows.
      const [last] = await db.execute<{ step: number | null }>(sql`
        select max(step) as step from rollouts where run_id = ${runId} and split = ${Split.train}`);
      const after = (last?.step ?? 0) - MAX_STEPS;
      const rows = await db.execute<{ [Name in keyof StepTokens]: string }>(sql`
        with groups as (
          select step,
            sum(sampled_tokens) as generated,
            coalesce(sum(sampled_tokens) filter (where outcome = ${Outcome.stale}), 0) as stale,
            coalesce(sum(sampled_tokens) filter (where outcome in (${Outcome.infraFailed}, ${Outcome.cancelled})), 0) as left_out,
            case when count(advantage) > 0 then max(abs(advantage)) = 0
              else count(reward) > 1 and min(reward) = max(reward) end as is_flat
          from rollouts left join trainings using (run_id, slot)
          where run_id = ${runId} and split = ${Split.train} and step > ${after}
          group by step, task
        )
        select step, sum(generated) as generated, sum(stale) as stale, sum(left_out) as "leftOut",
          coalesce(sum(generated - stale - left_out) filter (where is_flat), 0) as flat
        from groups group by step order by step`);
      return rows.map(({ step, generated, stale, leftOut, flat }) => ({
        step: Number(step),
        generated: Number(generated),
        stale: Number(stale),
        leftOut: Number(leftOut),
        flat: Number(flat),
      }));
    },
    { isRepeatable: true, deadlineMs: READ_DEADLINE_MS, action: "read the cost of a run" },
  );
}
