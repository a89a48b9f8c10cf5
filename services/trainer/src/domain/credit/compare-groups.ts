/**
 * Asks the judges that compare the rollouts of a group for their scores, once all rollouts of the group have arrived.
 *
 * C1: only rollouts with a reward are compared: those that do not count in the group's statistics are left out here, too.
 * C2: a group that cannot be compared is left out as a whole and counted; a judge that is away is waited for.
 * C3: a rollout that remains alone cannot be compared and gets the mean score of every group, a half.
 */

import { type GroupJudgeConfig, judgesOfPart } from "@hone/config";
import { isScorable, Outcome, type Slot } from "@hone/core";
import { clipReason, type Score } from "@hone/rl";
import { WaitOwner } from "../report/wait.ts";
import type { ScoredRollout } from "../rollouts/scored-rollout.ts";
import type { RunContext } from "../run/run-context.ts";

/** The part of a run's context that comparing needs. */
export type CompareContext = Pick<RunContext, "run" | "reporter" | "groupJudges" | "logger">;

const ALONE = 0.5;

/**
 * Adds the scores of the judges that compare groups to whole groups, in order of their slots.
 * @param partOf the part of a mix that the task of a rollout is of; empty = none.
 */
export async function compareGroups(
  context: CompareContext,
  scored: readonly ScoredRollout[],
  partOf: (slot: Slot) => string,
): Promise<readonly ScoredRollout[]> {
  const { config } = context.run;
  const { groupSize } = config.rollout;
  const judgesOf = (part: string) =>
    judgesOfPart(config, part).filter((each): each is GroupJudgeConfig => each.kind === "group");
  const groups: { readonly rollouts: ScoredRollout[]; readonly judges: readonly GroupJudgeConfig[] }[] = [];
  for (let begin = 0; begin < scored.length; begin += groupSize) {
    const rollouts = scored.slice(begin, begin + groupSize);
    groups.push({ rollouts, judges: judgesOf(partOf(rollouts[0]!.slot)) });
  }
  if (groups.every(({ judges }) => judges.length === 0)) return scored;
  const count = groups.filter(({ judges }) => judges.length > 0).length;
  const text = `${count} groups to be compared by the judge`;
  // All at once: the judge itself limits how many requests it handles at a time.
  const compared = await context.reporter.untilAvailable({ text, owner: WaitOwner.judge }, (signal) =>
    Promise.all(groups.map(({ rollouts, judges }) => compareGroup(context, rollouts, judges, signal))),
  );
  return compared.flat();
}

async function compareGroup(
  { run, groupJudges, logger }: CompareContext,
  group: readonly ScoredRollout[],
  judges: readonly GroupJudgeConfig[],
  signal: AbortSignal,
): Promise<ScoredRollout[]> {
  const compared = group.filter(({ outcome }) => isScorable(outcome)); // C1
  if (judges.length === 0 || compared.length === 0) return [...group];
  let scores: readonly (readonly Score[])[];
  if (compared.length === 1) {
    scores = [judges.map(({ kind, name = kind, weight }) => ({ judge: name, weight, value: ALONE }))]; // C3
  } else {
    const sequences = compared.map(({ sequence }) => sequence);
    const verdict = await groupJudges.compare({ runId: run.runId, sequences, judges }, signal);
    if (verdict.kind === "failed") {
      logger.warn("a group is left out because its judge failed", { reason: verdict.reason });
      return group.map((rollout) =>
        compared.includes(rollout) ? leftOut(rollout, verdict.reason) : rollout,
      ); // C2
    }
    scores = verdict.scores;
  }
  return group.map((rollout) => {
    const index = compared.indexOf(rollout);
    return index < 0 ? rollout : withScores(rollout, scores[index] ?? []);
  });
}

function withScores(rollout: ScoredRollout, added: readonly Score[]): ScoredRollout {
  return { ...rollout, scores: [...rollout.scores, ...added] };
}

function leftOut(rollout: ScoredRollout, reason: string): ScoredRollout {
  return { ...rollout, outcome: Outcome.infraFailed, reason: clipReason(reason) };
}
