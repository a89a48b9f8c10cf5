/** The rollouts that a step played and did not train, with their reasons, for the ledger. */

import { compareSlots } from "@hone/core";
import { type Credit, groupsThatTeach, reasonLine } from "@hone/rl";
import type { PlayedGroups, StepGroup } from "../groups/played-groups.ts";
import type { ScoredRollout } from "../rollouts/scored-rollout.ts";
import type { RunRecord } from "../run/run-record.ts";
import { type LeftOutRollout, LeftOutWhy } from "./chained-parts.ts";

/** A reason is for people; longer ones are cut. */
const MAX_REASON_CHARACTERS = 200;

/** @returns them in the order of their slots. */
export function leftOutOf(
  { config: { algorithm, trainer } }: Pick<RunRecord, "config">,
  { played, trained }: Pick<PlayedGroups, "played" | "trained">,
  { leftOut }: Pick<Credit<ScoredRollout>, "leftOut">,
): LeftOutRollout[] {
  const untrained = played.filter((group) => !trained.includes(group));
  const rules = { outcomes: algorithm.outcomes, passReward: trainer.eval.passReward };
  const teaching =
    algorithm.dynamicSampling === undefined || untrained.length === 0
      ? []
      : groupsThatTeach(played, algorithm.dynamicSampling, rules);
  const whyOf = (group: StepGroup) => (teaching.includes(group) ? LeftOutWhy.surplus : LeftOutWhy.flatGroup);
  return [
    ...leftOut.map((rollout) => rowOf(rollout, LeftOutWhy.outcome)),
    ...untrained.flatMap((group) => group.rollouts.map((rollout) => rowOf(rollout, whyOf(group)))),
  ].sort((a, b) => compareSlots(a.slot, b.slot));
}

function rowOf({ slot, attempt, outcome, reason = "" }: ScoredRollout, why: LeftOutWhy): LeftOutRollout {
  return { slot, attempt, outcome, why, reason: reasonOf(reason) };
}

/** One line, without a half of a character, which the database would refuse. */
function reasonOf(reason: string): string {
  return reasonLine(reason, MAX_REASON_CHARACTERS).toWellFormed();
}
