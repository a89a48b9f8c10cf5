/**
 * Reads lists of rollouts: filtered, searched, and sorted by any column.
 *
 * L1: each sort has an index of the run and the column, which is read from its beginning or end, so a page of 100,000 rollouts is found
 *     without reading or sorting all of them.
 * L2: words are found in two ways. Where few rollouts have them, these are looked up in the index of words and sorted; where many have
 *     them, the sort's index is read until a page of them has been found, which is soon. Which of the two it is, is counted first, up to
 *     a bound, as the database can only guess how often words occur and is badly wrong for rare ones.
 */

import { type Database, query, type SQL, sql, transaction } from "@hone/storage";
import type { RolloutFilter, RolloutPage, RolloutSort } from "../../domain/ports.ts";
import { TextPlace } from "../../domain/search/rollout-texts.ts";
import { READ_DEADLINE_MS } from "../read-deadline.ts";
import { rollouts, trainings } from "../schema.ts";
import { rolloutRow, sameRollout } from "./read-rollouts.ts";

/** What each sort compares; several values are compared one after another. */
const KEYS: Readonly<Record<RolloutSort, readonly SQL[]>> = {
  stored: [],
  rollout: [sql`split`, sql`step`, sql`task`, sql`index`],
  outcome: [sql`outcome`],
  reward: [sql`reward`],
  advantage: [sql`advantage`],
  turns: [sql`turns`],
  tokens: [sql`sampled_tokens`],
  time: [sql`duration_ms`],
  task: [sql`left(task_id, 200)`],
};

/** Up to this number of rollouts that have the words, these are looked up; the index of words gives them in milliseconds (L2). */
const MAX_LOOKED_UP = 2_000;

/** @param runId undefined = of all runs. */
export async function listRollouts(
  database: Database,
  runId: string | undefined,
  filter: RolloutFilter,
): Promise<RolloutPage> {
  const { sort = "stored", isAscending = false, offset = 0, limit, words } = filter;
  const few = await fewWithWords(database, runId, filter);
  return query(
    database,
    async (db) => {
      const found = await db.execute<{ id: string }>(sql`
        select rollouts.id from rollouts
        ${sort === "advantage" ? sql`join trainings using (run_id, slot)` : sql``}
        where ${conjunction(conditionsOf(runId, filter, few))}
        order by ${orderOf(sort, isAscending)}
        limit ${limit + 1} offset ${sort === "stored" ? 0 : offset}`);
      const ids = found.slice(0, limit).map(({ id }) => Number(id));
      const rows =
        ids.length === 0
          ? []
          : await db
              .select({
                ...rolloutRow,
                scored: words === undefined ? sql<null>`null` : rollouts.scored,
              })
              .from(rollouts)
              .leftJoin(trainings, sameRollout)
              .where(sql`rollouts.id in ${ids}`);
      const byId = new Map(rows.map((row) => [row.id, row]));
      const hasMore = found.length > limit;
      return {
        rollouts: ids.flatMap((id) => byId.get(id) ?? []),
        nextBeforeId: hasMore && sort === "stored" ? (ids.at(-1) ?? null) : null,
        nextOffset: hasMore && sort !== "stored" ? offset + limit : null,
      };
    },
    { isRepeatable: true, deadlineMs: READ_DEADLINE_MS, action: "list rollouts" },
  );
}

/** The ids of the rollouts that have the words, if they are few; undefined = they are many, or nothing is searched (L2). */
async function fewWithWords(
  database: Database,
  runId: string | undefined,
  filter: RolloutFilter,
): Promise<readonly number[] | undefined> {
  const found = foundBy(filter);
  if (found === undefined) return undefined;
  const ids = await transaction(
    database,
    async (tx) => {
      // So that it is the index of words that is read, whatever the database guesses.
      await tx.execute(sql`
        select set_config('enable_seqscan', 'off', true), set_config('enable_indexscan', 'off', true)`);
      return tx.execute<{ id: string }>(sql`
        select id from rollouts where ${found} ${runId === undefined ? sql`` : sql`and run_id = ${runId}`}
        limit ${MAX_LOOKED_UP + 1}`);
    },
    { action: "search rollouts", deadlineMs: READ_DEADLINE_MS },
  );
  return ids.length > MAX_LOOKED_UP ? undefined : ids.map(({ id }) => Number(id));
}

/** @param few the rollouts that have the words; undefined = the condition itself is used. */
function conditionsOf(
  runId: string | undefined,
  filter: RolloutFilter,
  few: readonly number[] | undefined,
): SQL[] {
  const { split, step, task, outcome, minReward, maxReward, beforeId, taskId, isNoted, sort } = filter;
  const conditions: (SQL | undefined)[] = [
    runId === undefined ? undefined : sql`rollouts.run_id = ${runId}`,
    split === undefined ? undefined : sql`split = ${split}`,
    step === undefined ? undefined : sql`step = ${step}`,
    task === undefined ? undefined : sql`task = ${task}`,
    outcome === undefined ? undefined : sql`outcome = ${outcome}`,
    minReward === undefined ? undefined : sql`reward >= ${minReward}`,
    maxReward === undefined ? undefined : sql`reward <= ${maxReward}`,
    beforeId === undefined ? undefined : sql`rollouts.id < ${beforeId}`,
    taskId === undefined ? undefined : sql`left(task_id, 200) = left(${taskId}, 200) and task_id = ${taskId}`,
    few === undefined
      ? foundBy(filter)
      : sql`rollouts.id = any(string_to_array(${few.join(",")}, ',')::bigint[])`,
    // As for advantages: what has no value has no place in the order.
    sort === "reward" ? sql`reward is not null` : undefined,
    isNoted === true
      ? sql`exists (select from notes where notes.run_id = rollouts.run_id and notes.slot = rollouts.slot)`
      : undefined,
  ];
  return conditions.filter((condition) => condition !== undefined);
}

/** The condition of the words: there is an index of all, and one of those of each place. Undefined = nothing is searched. */
function foundBy({ words, place }: RolloutFilter): SQL | undefined {
  if (words === undefined) return undefined;
  const searched = sql`websearch_to_tsquery('simple', ${words})`;
  return sql`${place === undefined ? sql`words` : wordsAt(place)} @@ ${searched}`;
}

/** The words of one place, in the form in which migrations.ts indexes them. */
function wordsAt(place: TextPlace): SQL {
  return sql.raw(`ts_filter(words, '{${TextPlace[place]}}')`);
}

function conjunction(conditions: readonly SQL[]): SQL {
  return conditions.length === 0 ? sql`true` : sql.join([...conditions], sql` and `);
}

/**
 * The order is that of an index, read forwards or backwards (L1); what is equal has the order of storing.
 */
function orderOf(sort: RolloutSort, isAscending: boolean): SQL {
  const direction = isAscending ? sql`asc` : sql`desc`;
  const keys = KEYS[sort].map((key) => sql`${key} ${direction}`);
  return sql.join([...keys, sql`rollouts.id ${direction}`], sql`, `);
}
