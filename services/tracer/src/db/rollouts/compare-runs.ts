/** Reads what several runs have in common: the tasks that they played. */

import { type Database, query, sql } from "@hone/storage";
import type { CommonTask, TaskRollout } from "../../domain/ports.ts";
import { READ_DEADLINE_MS } from "../read-deadline.ts";

const READ = { isRepeatable: true, deadlineMs: READ_DEADLINE_MS } as const;
const MAX_TASKS = 100;
/** Of one run. */
const MAX_ROLLOUTS = 300;
/** The newest rollouts of each run, whose tasks are compared. */
const MAX_COMPARED = 20_000;

/**
 * The tasks that at least two of the runs played in their newest rollouts, those with the largest difference of the mean rewards first; of one run, its tasks
 * with the largest difference between rollouts.
 */
export async function readCommonTasks(
  database: Database,
  runIds: readonly string[],
  split: string,
): Promise<CommonTask[]> {
  const rows = await query(
    database,
    (db) =>
      db.execute<{ task_id: string; by_run: CommonTask["byRun"] }>(sql`
        with each as (
          select left(task_id, 200) as task_id, run_id, count(*)::int as rollouts, avg(reward) as reward,
            coalesce(max(reward) - min(reward), 0) as spread
          from (${sql.join(
            runIds.map(
              (runId) => sql`(
                select run_id, task_id, reward from rollouts where run_id = ${runId} and split = ${split}
                order by step desc, id desc limit ${MAX_COMPARED}
              )`,
            ),
            sql` union all `,
          )}) as newest group by 1, 2
        )
        select task_id, jsonb_object_agg(run_id, jsonb_build_object('rollouts', rollouts, 'reward', reward)) as by_run
        from each group by task_id having count(*) >= ${Math.min(2, runIds.length)}
        order by ${runIds.length === 1 ? sql`max(spread)` : sql`max(reward) - min(reward)`} desc nulls last, task_id
        limit ${MAX_TASKS}`),
    { ...READ, action: "read common tasks" },
  );
  return rows.map(({ task_id: taskId, by_run: byRun }) => ({ taskId, byRun }));
}

/** The rollouts of one task in each run, in the order of the policy versions. */
export async function readTaskRollouts(
  database: Database,
  runIds: readonly string[],
  taskId: string,
): Promise<TaskRollout[]> {
  return query(
    database,
    async (db) => {
      const pages = await Promise.all(
        runIds.map((runId) =>
          db.execute<TaskRollout & Record<string, unknown>>(sql`
            select run_id as "runId", slot, split, step, outcome, reward from rollouts
            where run_id = ${runId} and left(task_id, 200) = left(${taskId}, 200)
            order by step, split, task, index limit ${MAX_ROLLOUTS}`),
        ),
      );
      return pages.flatMap((page) =>
        page.map(({ runId, slot, split, step, outcome, reward }) => ({
          runId,
          slot,
          split,
          step,
          outcome,
          reward,
        })),
      );
    },
    { ...READ, action: "read the rollouts of a task" },
  );
}
