/** Rollouts without a message bus: the command line plays them, and checks the agents of a run file. */

export { readConfig } from "./config.ts";
export type { RowsOfSplit } from "./domain/admission/check-agents.ts";
export type { JobTask, RolloutJob, RolloutRecord } from "./domain/rollout-job.ts";
export { runRollout } from "./domain/run-rollout.ts";
export { answerValidate } from "./nats/answer-validate.ts";
export { openRolloutParts, type RolloutParts } from "./open-rollout-parts.ts";
export { type ServedSessions, serveSessions } from "./serve-sessions.ts";
