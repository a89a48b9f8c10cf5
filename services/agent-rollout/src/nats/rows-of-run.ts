/** Asks the dataset service for the first rows of a run's datasets. */

import { create } from "@bufbuild/protobuf";
import { environmentOfTasks, pathText, type RunConfig, type TaskPart, taskPartsOf } from "@hone/config";
import { parseJson } from "@hone/core";
import { type Bus, BusUnavailableError, request, subjects } from "@hone/messaging";
import { BatchReplySchema, BatchRequestSchema } from "@hone/proto-gen/dataset";
import type { RowsOfSplit } from "../domain/admission/check-agents.ts";

/** Enough to find the agents that a dataset usually names; later rows are checked when they are played. */
const CHECKED_ROWS = 64;
const TIMEOUT_MS = 5_000;

/** Leaves out splits whose rows the dataset service cannot give; that service reports why when it validates the run. */
export async function rowsOfRun(bus: Bus, run: RunConfig): Promise<RowsOfSplit[]> {
  const sources = taskPartsOf(run).filter(({ tasks }) => environmentOfTasks(tasks) === undefined);
  const found = await Promise.all(sources.map((source) => firstRowsOf(bus, source)));
  return found.filter(({ rows }) => rows.length > 0);
}

async function firstRowsOf(bus: Bus, { path, name, tasks: source }: TaskPart): Promise<RowsOfSplit> {
  const place = { key: `${pathText(path)}.path`, ...(name !== "" && { part: name }) };
  const message = create(BatchRequestSchema, {
    sourceJson: JSON.stringify(source),
    count: CHECKED_ROWS,
    shuffled: false,
  });
  try {
    const options = { timeoutMs: TIMEOUT_MS };
    const reply = await request(
      bus,
      subjects.datasetBatch(),
      BatchRequestSchema,
      message,
      BatchReplySchema,
      options,
    );
    // A batch repeats the rows of a short dataset.
    const tasks = reply.tasks.slice(0, Number(reply.size));
    return { ...place, rows: tasks.map(({ id, rowJson }) => ({ id, row: rowOf(rowJson) })) };
  } catch (error) {
    if (!(error instanceof BusUnavailableError)) throw error;
    return { ...place, rows: [] };
  }
}

function rowOf(json: string): Readonly<Record<string, unknown>> {
  const row: unknown = parseJson(json || "{}");
  return typeof row === "object" && row !== null ? { ...row } : {};
}
