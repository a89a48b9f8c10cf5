/** The judge `format`: how often the agent's answers had a form that the environment could read. */

import { JudgeError } from "../../errors.ts";
import type { JudgedEpisode } from "../judged-episode.ts";

/** Names under which environments report whether a turn's answer was valid; the second is ROLL's. */
const VALIDITY_KEYS = ["isValid", "action_is_valid"] as const;

/**
 * Share of valid answers, in [0, 1], among the turns for which the environment reports it; 0 for an episode without turns.
 * @throws {JudgeError} when no turn says whether its answer was valid, as the environment does not report it.
 */
export function judgeFormat(episode: JudgedEpisode): number {
  if (episode.turns.length === 0) return 0;
  const answers = episode.turns.map(validityOf).filter((isValid) => isValid !== undefined);
  if (answers.length === 0) {
    throw new JudgeError(
      "format",
      `none of the ${episode.turns.length} turns says "${VALIDITY_KEYS.join('" or "')}"; the judge "format" needs an environment that reports whether answers are valid`,
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
