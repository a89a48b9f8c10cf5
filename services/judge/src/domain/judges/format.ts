/** The judge `format`: how often the agent answered in a form that the environment understood. */

import { JudgeError } from "../../errors.ts";
import type { JudgedEpisode } from "../judged-episode.ts";

/** Names under which environments say whether a turn's answer was valid; the second is ROLL's. */
const VALIDITY_KEYS = ["isValid", "action_is_valid"] as const;

/**
 * Share of valid answers among the turns of which the environment says so, in [0, 1]; 0 for an episode without turns.
 * @throws {JudgeError} when no turn says whether its answer was valid: then the environment does not report it.
 */
export function judgeFormat(episode: JudgedEpisode): number {
  if (episode.turns.length === 0) return 0;
  const answers = episode.turns.map(validityOf).filter((isValid) => isValid !== undefined);
  if (answers.length === 0) {
    throw new JudgeError(
      "format",
      `Cannot judge the format as a turn must say "${VALIDITY_KEYS.join('" or "')}": current value is none of ${episode.turns.length} turns`,
    );
  }
  return answers.filter((isValid) => isValid).length / answers.length;
}

function validityOf(turn: JudgedEpisode["turns"][number]): boolean | undefined {
  for (const key of VALIDITY_KEYS) {
    const value = turn.info[key];
    if (typeof value === "boolean") return value;
  }
  return undefined;
}
