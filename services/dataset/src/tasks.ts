/** Tasks without a message bus: the command line plays them, and checks the rows of a run file. */

export { readDatasetConfig } from "./config.ts";
export type { Task } from "./domain/task.ts";
export type { TaskOrder } from "./domain/task-order.ts";
export { openSource, type SourceParts } from "./files/sources/open-source.ts";
export { answerValidate } from "./nats/validate.ts";
export { openSourceParts } from "./open-source-parts.ts";
