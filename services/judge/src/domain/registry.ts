/**
 * The judges by kind.
 *
 * Adding one: give it a kind in the run file's schema (@hone/config), a pure function in a file of its own under
 * `judges/`, and a row in JUDGES; the table is typed over all kinds, so a missing row does not compile.
 */

import type { JudgeConfig } from "@hone/config";
import type { JudgedEpisode } from "./judged-episode.ts";
import { judgeEnvironment } from "./judges/environment.ts";
import { judgeFormat } from "./judges/format.ts";

/** Kinds of judges that a run file may name. */
export type JudgeKind = JudgeConfig["kind"];

/** Scores one episode. Deterministic: the same episode gives the same value. @throws {JudgeError} when it cannot. */
export type Judge = (episode: JudgedEpisode) => number;

export const JUDGES: Readonly<Record<JudgeKind, Judge>> = {
  environment: judgeEnvironment,
  format: judgeFormat,
};
