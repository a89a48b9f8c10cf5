/** Answers `hone.v1.dataset.batch`: the same request gets the same answer from every replica. */

import { create } from "@bufbuild/protobuf";
import { describeError, RetryableError } from "@hone/core";
import { type BatchReply, BatchReplySchema, type BatchRequest, TaskSchema } from "@hone/proto-gen/dataset";
import type { Task } from "../domain/task.ts";
import { SourceError } from "../errors.ts";
import { openSource, type SourceParts } from "../files/sources/open-source.ts";
import { decodeSourceJson } from "./decode-source.ts";

/** Most tasks of one reply; more could make a reply of hundreds of megabytes. */
const MAX_COUNT = 100_000;

/** Never rejects: an error is put into the reply. */
export async function answerBatch(request: BatchRequest, parts: SourceParts): Promise<BatchReply> {
  try {
    const order = await openSource(decodeSourceJson(request.sourceJson), parts);
    const count = checkedCount(request.count);
    // The last position is checked too, as adding 1 to 2^53 gives 2^53 again.
    safeInteger(request.cursor + BigInt(count), "end of the batch");
    const tasks = await order.take({
      runSeed: safeInteger(request.runSeed, "run seed"),
      cursor: safeInteger(request.cursor, "cursor"),
      count,
      isShuffled: request.shuffled,
    });
    return create(BatchReplySchema, { tasks: tasks.map(taskToWire), size: BigInt(order.size) });
  } catch (error) {
    return create(BatchReplySchema, { error: describeError(error), isRetryable: isRetryable(error) });
  }
}

function taskToWire(task: Task) {
  const { part = "" } = task;
  return task.kind === "environment"
    ? create(TaskSchema, {
        id: task.id,
        part,
        environment: task.environment,
        environmentSeed: BigInt(task.seed),
        environmentConfigJson: task.configJson,
      })
    : create(TaskSchema, { id: task.id, part, rowJson: task.rowJson });
}

function safeInteger(value: bigint, name: string): number {
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw new SourceError(`the ${name} is ${value}; it must be below 2^53`, {
      path: "",
      allowed: "0 to 2^53 - 1",
    });
  }
  return Number(value);
}

function checkedCount(count: number): number {
  if (count < 1 || count > MAX_COUNT) {
    throw new SourceError(`a batch of ${count} tasks cannot be made; ask for 1 to ${MAX_COUNT} tasks`, {
      path: "",
      allowed: `1 to ${MAX_COUNT}`,
    });
  }
  return count;
}

/** Codes of disk errors that end when a mount or a limit recovers. */
const RETRYABLE_CODES: ReadonlySet<string> = new Set([
  "EIO",
  "EMFILE",
  "ENFILE",
  "ESTALE",
  "EAGAIN",
  "ETIMEDOUT",
  "ENOMEM",
]);

function isRetryable(error: unknown): boolean {
  if (error instanceof RetryableError) return true;
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && RETRYABLE_CODES.has(code);
}
