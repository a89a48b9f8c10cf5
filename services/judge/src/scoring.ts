/** Judging without a message bus: the command line scores files and stored rollouts with it. */

export type { JudgeParts } from "./domain/judge-parts.ts";
export type { JudgedEpisode, JudgedTurn } from "./domain/judged-episode.ts";
export { judgedRowOf } from "./domain/judged-episode.ts";
export { assemblePanel, type Panel } from "./domain/panel.ts";
export { type DetailedScore, scoreEpisode, type Verdict } from "./domain/score-episode.ts";
export { answerValidate } from "./nats/answer-validate.ts";
export { openJudgeParts } from "./open-judge-parts.ts";
