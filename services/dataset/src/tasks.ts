/** Tasks without a bus: what the command line plays, and checks a run file's rows with. */

export { readDatasetConfig } from "./config.ts";
export type { Task } from "./domain/task.ts";
export type { TaskOrder } from "./domain/task-order.ts";
export { openSource, type SourceParts } from "./files/sources/open-source.ts";
export { answerValidate } from "./nats/validate.ts";
export { openSourceParts } from "./open-source-parts.ts";
