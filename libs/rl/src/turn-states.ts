/** The states in which the turns of a rollout acted, as texts that are equal where the states are. */

import type { Rollout } from "./rollout.ts";

/**
 * What its environment named each turn's state; where there is no environment, the tokens that the model was shown since its
 * last answer: the whole prompt at the first turn of a sample, then what tools and others said.
 * @returns [turnCount] a turn that is in no sample has a state of its own.
 */
export function turnStatesOf(rollout: Rollout): string[] {
  const { samples, turns = [], turnCount } = rollout;
  const ends = samples.map(() => 0);
  return Array.from({ length: turnCount }, (_, index) => {
    const turn = turns[index];
    if (turn?.state !== undefined) return `state ${turn.state}`;
    const sample = turn === undefined ? undefined : samples[turn.sample];
    if (turn === undefined || sample === undefined) return `turn ${index} of rollout ${rollout.slot.index}`;
    const shown = Array.prototype.slice.call(sample.tokenIds, ends[turn.sample], turn.begin);
    ends[turn.sample] = turn.end;
    return `tokens ${shown.join(" ")}`;
  });
}
