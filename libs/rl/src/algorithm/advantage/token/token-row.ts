/**
 * A rollout as one row of sampled tokens in the order in which they were sampled, with the reward of each.
 *
 * Samples of a rollout may take turns (an agent with roles goes from one history to the other), so the order is that of the
 * turns. Rewards stand on sampled tokens only: what a turn earned on the last token of the turn, or, where none of its
 * tokens is trained, on the last token before it.
 */

import { z } from "zod";
import { type Rollout, rolloutTokenCount } from "../../../rollout.ts";
import { sumOf } from "../../statistics.ts";
import type { RewardedRollout, RolloutAdvantage } from "../advantage.ts";

/** Which rewards an algorithm follows from token to token. Fixed vocabulary of the run file. */
export const TokenCredit = {
  /** The episode's reward, on its last token. */
  episode: "episode",
  /** Those of its turns, each on the turn's last token; what a length penalty takes off, on the last of all. */
  turns: "turns",
} as const;
export type TokenCredit = (typeof TokenCredit)[keyof typeof TokenCredit];

/** The option `credit` of algorithms that follow rewards from token to token. */
export const creditOption = z.enum(TokenCredit).default(TokenCredit.episode);

/** The key that asks for rewards of turns. */
export function turnKeyOfCredit({ credit }: { readonly credit: TokenCredit }): string | undefined {
  return credit === TokenCredit.turns ? "credit" : undefined;
}

/** Whether the episode's reward is read. */
export function readsRewardByCredit({ credit }: { readonly credit: TokenCredit }): boolean {
  return credit === TokenCredit.episode;
}

/** N sampled tokens. */
export interface TokenRow {
  /** [N] where each token stands among the sampled tokens of all samples, one sample after the other. */
  readonly places: Uint32Array;
  /** [N] the turn of each token; -1 = it is in none. */
  readonly turns: Int32Array;
  /** [N] */
  readonly rewards: Float64Array;
}

/** Lays out a rollout. */
export function tokenRowOf(
  { rollout, reward, tokenRewards = [], turnRewards, penalty = 0 }: RewardedRollout,
  credit: TokenCredit,
): TokenRow {
  const { places, turns } = layOut(rollout);
  const rewards = Float64Array.from(places, (place) => tokenRewards[place] ?? 0);
  const last = places.length - 1;
  if (last < 0) return { places, turns, rewards };
  if (credit === TokenCredit.episode || turnRewards === undefined) {
    rewards[last] = rewards[last]! + reward - sumOf(tokenRewards);
    return { places, turns, rewards };
  }
  const ends = endsOfTurns(turns, turnRewards.length);
  turnRewards.forEach((value, turn) => {
    rewards[ends[turn]!] = rewards[ends[turn]!]! + value;
  });
  rewards[last] = rewards[last]! + penalty;
  return { places, turns, rewards };
}

/**
 * The advantages of a row as those of its rollout, in the coarsest form that says the same: one number, one for each turn or
 * one for each token.
 * @param values [N] in the order of the row.
 */
export function rolloutAdvantageOf(
  row: TokenRow,
  rollout: Rollout,
  values: ArrayLike<number>,
): RolloutAdvantage {
  const { turns } = row;
  const count = turns.length;
  if (count === 0) return { advantage: 0 };
  let sum = 0;
  let isEqual = true;
  for (let token = 0; token < count; token++) {
    sum += values[token]!;
    isEqual &&= values[token] === values[0];
  }
  // + 0: a ledger that keeps numbers as text knows no -0.
  if (isEqual) return { advantage: values[0]! + 0 };
  const advantage = sum / count + 0;
  const turnAdvantages = turnAdvantagesOf(turns, rollout.turnCount, values, advantage);
  if (turnAdvantages !== undefined) return { advantage, turnAdvantages };
  return { advantage, tokenAdvantages: inSampleOrder(row, values) };
}

/** @returns [N] numbers that are given in the order of the samples' tokens, in the order of the row. */
export function inRowOrder({ places }: TokenRow, values: ArrayLike<number>): Float64Array {
  return Float64Array.from(places, (place) => values[place]!);
}

/** @returns [N] numbers that are given in the order of the row, in the order of the samples' tokens. */
export function inSampleOrder({ places }: TokenRow, values: ArrayLike<number>): Float64Array {
  const ordered = new Float64Array(places.length);
  places.forEach((place, token) => {
    ordered[place] = values[token]!;
  });
  return ordered;
}

/** [turnCount] where the tokens of each turn are equal and each token is in a turn; undefined otherwise. */
function turnAdvantagesOf(
  turns: Int32Array,
  turnCount: number,
  values: ArrayLike<number>,
  ofNoToken: number,
): number[] | undefined {
  const found = new Array<number | undefined>(turnCount);
  for (let token = 0; token < turns.length; token++) {
    const turn = turns[token]!;
    if (turn < 0) return undefined;
    found[turn] ??= values[token]! + 0;
    if (found[turn] !== values[token]!) return undefined;
  }
  return Array.from(found, (value) => value ?? ofNoToken);
}

/** The sampled tokens in the order of the turns; those in no turn come after them. */
function layOut(rollout: Rollout): { places: Uint32Array; turns: Int32Array } {
  const count = rolloutTokenCount(rollout);
  const places = new Uint32Array(count);
  const turns = new Int32Array(count).fill(-1);
  const isPlaced = new Uint8Array(count);
  let placed = 0;
  const place = (at: number, turn: number) => {
    if (isPlaced[at] === 1) return;
    isPlaced[at] = 1;
    turns[placed] = turn;
    places[placed++] = at;
  };
  const positions = rollout.turns === undefined ? [] : placesOfPositions(rollout);
  rollout.turns?.forEach(({ sample, begin, end }, turn) => {
    const ofSample = positions[sample];
    for (let at = begin; ofSample !== undefined && at < end; at++) {
      const found = ofSample[at];
      if (found !== undefined && found >= 0) place(found, turn);
    }
  });
  for (let at = 0; at < count; at++) place(at, -1);
  return { places, turns };
}

/** For each sample [T], which of all sampled tokens each position is; -1 where it was not sampled. */
function placesOfPositions({ samples }: Rollout): Int32Array[] {
  let next = 0;
  return samples.map(({ lossMask }) => Int32Array.from(lossMask, (bit) => (bit === 1 ? next++ : -1)));
}

/** [turnCount] the token on which the reward of each turn stands. */
function endsOfTurns(turns: Int32Array, turnCount: number): number[] {
  const ends = new Array<number>(turnCount).fill(-1);
  turns.forEach((turn, token) => {
    if (turn >= 0 && turn < turnCount) ends[turn] = token;
  });
  // Before the first turn with tokens there is none to go back to.
  let latest = Math.max(0, ends.find((end) => end >= 0) ?? turns.length - 1);
  return ends.map((end) => {
    if (end >= 0) latest = end;
    return latest;
  });
}
