/** Asks dataset for tasks. */

import { create } from "@bufbuild/protobuf";
import { RetryableError } from "@hone/core";
import { type Bus, request, subjects } from "@hone/messaging";
import { BatchReplySchema, BatchRequestSchema } from "@hone/proto-gen/dataset";
import { RefusedByServiceError } from "../domain/errors.ts";
import type { Task, TaskRequest, TaskSource } from "../domain/rollouts/jobs.ts";

const BATCH_TIMEOUT_MS = 10_000;
/** Tasks of one request: few enough that the answer is a message of ordinary size. */
const TASKS_PER_REQUEST = 2_000;

/** The service dataset cannot answer now. */
class DatasetNotReadyError extends RetryableError {
  constructor(reason: string) {
    super("DATASET_NOT_READY", `dataset is not ready to give tasks: ${reason}`);
  }
}

export class DatasetClient implements TaskSource {
  readonly #bus: Bus;

  constructor(bus: Bus) {
    this.#bus = bus;
  }

  async batch(wanted: TaskRequest, signal: AbortSignal): Promise<{ tasks: Task[]; size: number }> {
    const tasks: Task[] = [];
    let size = 0;
    while (tasks.length < wanted.count) {
      const count = Math.min(TASKS_PER_REQUEST, wanted.count - tasks.length);
      const reply = await request(
        this.#bus,
        subjects.datasetBatch(),
        BatchRequestSchema,
        create(BatchRequestSchema, {
          sourceJson: wanted.sourceJson,
          runSeed: BigInt(wanted.runSeed),
          cursor: BigInt(wanted.cursor + tasks.length),
          count,
          shuffled: wanted.isShuffled,
        }),
        BatchReplySchema,
        { timeoutMs: BATCH_TIMEOUT_MS, signal },
      );
      if (reply.error !== "") {
        throw reply.isRetryable
          ? new DatasetNotReadyError(reply.error)
          : new RefusedByServiceError("dataset", reply.error);
      }
      if (reply.tasks.length !== count) {
        throw new RefusedByServiceError(
          "dataset",
          `${reply.tasks.length} tasks where ${count} were asked for`,
        );
      }
      tasks.push(...reply.tasks);
      size = Number(reply.size);
    }
    return { tasks, size };
  }
}
