/** The groups that a step has played, scored and ready to be trained. */

import { groupKey, Outcome } from "@hone/core";
import { type Group, playsBaseline, versionRange } from "@hone/rl";
import type { GatheredTroubles } from "../report/run-status.ts";
import type { Task } from "../rollouts/jobs.ts";
import type { ScoredRollout } from "../rollouts/scored-rollout.ts";
import type { RunContext } from "../run/run-context.ts";
import type { CompleteGroup } from "../step/ledger.ts";
import { leaveOutUntrainable } from "../step/trainable.ts";

/** What playing a step's groups needs. */
export type PlayContext = Pick<
  RunContext,
  "run" | "reporter" | "groupJudges" | "logger" | "engine" | "gatherer" | "deadlines" | "tasks"
>;

export type StepGroup = Group<ScoredRollout>;

/** The groups of a step, each list in the order of the tasks. */
export interface PlayedGroups {
  readonly played: readonly StepGroup[];
  /** Those that the step trains. */
  readonly trained: readonly StepGroup[];
  /** Number of groups that teach and are not trained, because the step has enough. */
  readonly surplusCount: number;
  /** Number of rollouts that were started and not waited for, because others finished before them. */
  readonly unneededCount: number;
  readonly batchCount: number;
  /** All tasks of the step; a group's index is that of its task. */
  readonly tasks: readonly Task[];
  /** Position from which the next step takes its tasks. */
  readonly nextCursor: number;
  /** Tasks that the curriculum considered and did not choose. */
  readonly numPassedOver: number;
  readonly troubles: GatheredTroubles | undefined;
  /** Present if the run is asynchronous. */
  readonly asynchronous?: AsynchronousPart;
}

/** What only a step of an asynchronous run has. */
export interface AsynchronousPart {
  /** The groups in the order in which they were complete. */
  readonly taken: readonly CompleteGroup[];
  /** Number of groups that were given up because they had grown too old. */
  readonly tooOldCount: number;
  /** Number of groups that were played beyond those of the step, at most. */
  readonly aheadCount: number;
  /** Number of groups that are still being played or wait for a later step. */
  readonly openCount: number;
  /** Number of scored rollouts that wait for a later step. */
  readonly waitingCount: number;
}

/** @returns all rollouts of groups, baselines included. */
export function rolloutsOf(groups: readonly StepGroup[]): ScoredRollout[] {
  return groups.flatMap(({ rollouts, baseline }) =>
    baseline === undefined ? rollouts : [...rollouts, baseline],
  );
}

/**
 * Prepares gathered rollouts for the judges that compare groups: those that cannot be trained lose what they have.
 * @param gathered whole groups in the order of their slots; a baseline may come in its group or after all groups.
 * @param versions those that may have sampled the tokens.
 */
export function prepareGroups(
  context: Pick<RunContext, "run" | "engine" | "logger">,
  gathered: readonly ScoredRollout[],
  versions: { readonly lowest: number; readonly highest: number },
): { readonly rollouts: readonly ScoredRollout[]; readonly baselines: readonly ScoredRollout[] } {
  const { rollout: settings, algorithm } = context.run.config;
  const hasBaselines = playsBaseline(algorithm.advantage);
  const isBaseline = ({ slot }: ScoredRollout) => hasBaselines && slot.index === settings.groupSize;
  const trainable = leaveOutUntrainable(
    context,
    gathered.filter((rollout) => !isBaseline(rollout)),
  );
  return {
    rollouts: trainable.map((rollout) => markStale(rollout, versions)),
    baselines: gathered.filter(isBaseline).map((rollout) => markStale(rollout, versions)),
  };
}

/** @param rollouts whole groups in the order of their slots. */
export function groupsOf(
  groupSize: number,
  rollouts: readonly ScoredRollout[],
  baselines: readonly ScoredRollout[],
): StepGroup[] {
  const byGroup = new Map(baselines.map((baseline) => [groupKey(baseline.slot), baseline]));
  return Array.from({ length: rollouts.length / groupSize }, (_, i) => {
    const group = rollouts.slice(i * groupSize, (i + 1) * groupSize);
    const { slot } = group[0]!;
    const baseline = byGroup.get(groupKey(slot));
    return { task: slot.task, rollouts: group, ...(baseline !== undefined && { baseline }) };
  });
}

/** Tokens of any other version than those asked for must not be trained (architecture, part 5, rule 6). */
function markStale(
  rollout: ScoredRollout,
  { lowest, highest }: { readonly lowest: number; readonly highest: number },
): ScoredRollout {
  const range = versionRange(rollout);
  if (range === undefined || (range.lowest >= lowest && range.highest <= highest)) return rollout;
  const asked = lowest === highest ? `${lowest} was` : `${lowest} to ${highest} were`;
  const reason = `its tokens are of the versions ${range.lowest} to ${range.highest}, and ${asked} asked for`;
  return { ...rollout, outcome: Outcome.stale, reason };
}
