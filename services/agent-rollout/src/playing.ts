/** Rollouts without a bus: what the command line plays, and checks a run file's agents with. */

export { readConfig } from "./config.ts";
export type { RowsOfSplit } from "./domain/check-agents.ts";
export type { JobTask, RolloutJob, RolloutRecord } from "./domain/rollout-job.ts";
export { runRollout } from "./domain/run-rollout.ts";
export { answerValidate } from "./nats/answer-validate.ts";
export { openRolloutParts, type RolloutParts } from "./open-rollout-parts.ts";
export { type ServedSessions, serveSessions } from "./serve-sessions.ts";
