/**
 * The judges by kind.
 *
 * Adding one: give it a kind, a pure function in a file of its own under `judges/`, and a row in JUDGES; the table is
 * typed over all kinds, so a missing row does not compile.
 */

import type { JudgedEpisode } from "./judged-episode.ts";
import { judgeEnvironment } from "./judges/environment.ts";
import { judgeFormat } from "./judges/format.ts";

/** Kinds of judges that a run file may name. */
export const JudgeKind = {
  /** The environment's return. */
  environment: "environment",
  /** Share of turns whose answer was valid. */
  format: "format",
} as const;
export type JudgeKind = (typeof JudgeKind)[keyof typeof JudgeKind];

/** Scores one episode. Deterministic: the same episode gives the same value. @throws {JudgeError} when it cannot. */
export type Judge = (episode: JudgedEpisode) => number;

export const JUDGES: Readonly<Record<JudgeKind, Judge>> = {
  environment: judgeEnvironment,
  format: judgeFormat,
};
