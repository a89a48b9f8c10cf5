/** The right answer that a row contains. */

import { JudgeError } from "../errors.ts";
import type { JudgedEpisode } from "./judged-episode.ts";

/**
 * The ground truth as text; a number is written as in JSON.
 * @throws {JudgeError} when the row has none, or it is neither text nor number.
 */
export function groundTruthOf(episode: JudgedEpisode, judge: string): string {
  const found = episode.row?.groundTruth;
  if (typeof found === "string") return found;
  if (typeof found === "number") return String(found);
  throw new JudgeError(
    judge,
    `the row's reward_model.ground_truth is ${JSON.stringify(found) ?? "missing"}; the judge "${judge}" needs a text or a number there`,
  );
}

/** The ground truth as a part of a question to a model; empty where the row has none. */
export function referenceOf({ row }: JudgedEpisode): [tag: string, text: string][] {
  const found = row?.groundTruth;
  if (found === undefined || found === null) return [];
  return [["reference", typeof found === "string" ? found : JSON.stringify(found)]];
}
