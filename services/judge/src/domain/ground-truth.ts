/** The answer that a row knows. */

import { JudgeError } from "../errors.ts";
import type { JudgedEpisode } from "./judged-episode.ts";

/**
 * The ground truth as text; numbers as they are written in JSON.
 * @throws {JudgeError} when the row has none, or it is neither text nor number.
 */
export function groundTruthOf(episode: JudgedEpisode, judge: string): string {
  const found = episode.row?.groundTruth;
  if (typeof found === "string") return found;
  if (typeof found === "number") return String(found);
  throw new JudgeError(
    judge,
    `Cannot compare with the ground truth as the row must hold a text or a number as reward_model.ground_truth: current value is ${JSON.stringify(found) ?? "absent"}`,
  );
}

/** The ground truth as a part of a question to a model; nothing where the row has none. */
export function referenceOf({ row }: JudgedEpisode): [tag: string, text: string][] {
  const found = row?.groundTruth;
  if (found === undefined || found === null) return [];
  return [["reference", typeof found === "string" ? found : JSON.stringify(found)]];
}
