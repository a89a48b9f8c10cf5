/** What the trainer reads of a task: only to tell tasks of several kinds apart. */

import type { Task } from "./jobs.ts";

export type DescribedTask = Pick<Task, "rowJson" | "environment" | "environmentConfigJson">;

/** The fields of a task's row, or an environment's name and configuration. */
export function fieldsOf({
  rowJson,
  environment,
  environmentConfigJson,
}: DescribedTask): Readonly<Record<string, unknown>> {
  const fields = JSON.parse(rowJson || environmentConfigJson || "{}") as Record<string, unknown>;
  return rowJson === "" ? { environment, ...fields } : fields;
}

/** What tells the kinds of a run's tasks apart: the part of a mix that the task is of, or else its source. */
export function kindOf(task: DescribedTask & Pick<Task, "part">): string {
  return task.part !== "" ? task.part : sourceOf(task);
}

/** The environment of a task, or the `data_source` of its row; empty where it names none. */
export function sourceOf(task: DescribedTask): string {
  if (task.environment !== "") return task.environment;
  const { data_source: source } = fieldsOf(task);
  return typeof source === "string" ? source : "";
}
