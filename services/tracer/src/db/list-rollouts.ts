/**
 * Reads lists of rollouts: filtered, searched, and sorted by any column.
 *
 * The ids of a page are found first, from an index that has every column of a filter and a sort, so a list of 100,000 rollouts is
 * sorted without reading their rows. Only a task's id and words are elsewhere: the one has an index of its own, the others are
 * found by their words.
 */

import { type Database, query, type SQL, sql } from "@hone/storage";
import type { RolloutFilter, RolloutPage, RolloutSort } from "../domain/ports.ts";
import { TextPlace } from "../domain/search/rollout-texts.ts";
import { READ_DEADLINE_MS } from "./read-deadline.ts";
import { rolloutRow, sameRollout } from "./read-rollouts.ts";
import { rollouts, trainings } from "./schema.ts";

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

/** @param runId undefined = of all runs. */
export async function listRollouts(
  database: Database,
  runId: string | undefined,
  filter: RolloutFilter,
): Promise<RolloutPage> {
  const { sort = "stored", isAscending = false, offset = 0, limit, words } = filter;
  return query(
    database,
    async (db) => {
      const found = await db.execute<{ id: string }>(sql`
        select rollouts.id from rollouts
        ${sort === "advantage" ? sql`join trainings using (run_id, slot)` : sql``}
        where ${conjunction(conditionsOf(runId, filter))}
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

function conditionsOf(runId: string | undefined, filter: RolloutFilter): SQL[] {
  const { split, step, task, outcome, minReward, maxReward, beforeId, taskId, words, place, isNoted } =
    filter;
  const found = words === undefined ? undefined : sql`websearch_to_tsquery('simple', ${words})`;
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
    // There is an index of all words, and one of those of each place.
    found && (place === undefined ? sql`words @@ ${found}` : sql`${wordsAt(place)} @@ ${found}`),
    isNoted === true
      ? sql`exists (select from notes where notes.run_id = rollouts.run_id and notes.slot = rollouts.slot)`
      : undefined,
  ];
  return conditions.filter((condition) => condition !== undefined);
}

/** The words of one place, in the form in which migrations.ts indexes them. */
function wordsAt(place: TextPlace): SQL {
  return sql.raw(`ts_filter(words, '{${TextPlace[place]}}')`);
}

function conjunction(conditions: readonly SQL[]): SQL {
  return conditions.length === 0 ? sql`true` : sql.join([...conditions], sql` and `);
}

/**
 * What has no value comes last in both directions; what is equal has the order of storing. Where a key always has a value, its order
 * is that of an index, read forwards or backwards.
 */
function orderOf(sort: RolloutSort, isAscending: boolean): SQL {
  const direction = isAscending ? sql`asc` : sql`desc`;
  const keys = KEYS[sort].map(
    (key) => sql`${key} ${direction}${sort === "reward" ? sql` nulls last` : sql``}`,
  );
  return sql.join([...keys, sql`rollouts.id ${direction}`], sql`, `);
}
