/**
 * The parts of rollouts that single roles played, so that each role learns from what it did and earned itself.
 *
 * A part is a rollout: it has the samples, turns and scores of its role, and the outcome of the whole.
 */

import type { Group, Rollout, Score, TurnSpan } from "./rollout.ts";

/** @param role undefined = the samples of no role that the run names. */
export function partOfRole<R extends Rollout>(rollout: R, role: string | undefined): R {
  const samples: R["samples"][number][] = [];
  const placeOf = new Map<number, number>();
  rollout.samples.forEach((sample, index) => {
    if (sample.role !== role) return;
    placeOf.set(index, samples.length);
    samples.push(sample);
  });
  const turnPlaces = new Map<number, number>();
  const turns: TurnSpan[] = [];
  (rollout.turns ?? []).forEach((turn, index) => {
    const sample = placeOf.get(turn.sample);
    if (sample === undefined) return;
    turnPlaces.set(index, turns.length);
    turns.push({ ...turn, sample });
  });
  return {
    ...rollout,
    samples,
    samplePlaces: [...placeOf.keys()],
    ...(rollout.turns !== undefined && { turns, turnCount: turns.length }),
    scores: rollout.scores.flatMap((score) => scoreOfRole(score, role, turnPlaces) ?? []),
    ...(role !== undefined && { role }),
  };
}

/** The index in the whole rollout of a sample of a rollout or of a role's part of it. */
export function placeOfSample({ samplePlaces }: Rollout, index: number): number {
  return samplePlaces === undefined ? index : samplePlaces[index]!;
}

/** The groups of a role, without those in which it played nothing. */
export function groupsOfRole<R extends Rollout>(
  groups: readonly Group<R>[],
  role: string | undefined,
): Group<R>[] {
  return groups.flatMap((group) => {
    const rollouts = group.rollouts.map((rollout) => partOfRole(rollout, role));
    if (rollouts.every(({ samples }) => samples.length === 0)) return [];
    const { baseline } = group;
    return [{ ...group, rollouts, ...(baseline !== undefined && { baseline: partOfRole(baseline, role) }) }];
  });
}

/** What a score says of a role; undefined where it says nothing of it. */
function scoreOfRole(
  score: Score,
  role: string | undefined,
  turnPlaces: ReadonlyMap<number, number>,
): Score | undefined {
  const { roles, roleValues = {}, turnRewards, ...rest } = score;
  if (role !== undefined && roles !== undefined && !roles.includes(role)) return undefined;
  const own = turnRewards?.flatMap(({ turn, value }) => {
    const place = turnPlaces.get(turn);
    return place === undefined ? [] : [{ turn: place, value }];
  });
  const value = role === undefined ? undefined : roleValues[role];
  return {
    ...rest,
    value: value ?? score.value,
    ...(own !== undefined && own.length > 0 && { turnRewards: own }),
  };
}
