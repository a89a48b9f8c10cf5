/** The advantages of a rollout's tokens by their parts, from what its algorithm says of them. N sampled tokens. */

import { type CreditedRollout, rolloutTokenCount, tokensOfAdvantage } from "@hone/rl";
import type { RolloutTokens, TokenColumn } from "./rollout-tokens.ts";

type AdvantageColumns = Pick<
  RolloutTokens,
  "shapedReward" | "whitening" | "clip" | "episode" | "turns" | "kl" | "taught" | "mean" | "scale"
>;

/**
 * @param places the tokens that the record has, in order; undefined = all.
 * @returns what the record says; of a rollout whose origin is not known, everything is the episode's.
 */
export function advantageColumns(
  { rollout, reward, origin, ...worth }: CreditedRollout,
  places?: readonly number[],
): AdvantageColumns {
  const made = origin?.made ?? worth;
  const { turns = 0, kl = 0, mean, scale } = made.parts ?? {};
  const count = rolloutTokenCount(rollout);
  const of = (values: number | ArrayLike<number>) =>
    places === undefined || typeof values === "number" ? values : places.map((place) => values[place]!);
  const all = tokensOfAdvantage(rollout, made);
  const episode = Float64Array.from(
    { length: count },
    (_, token) => all[token]! - at(turns, token) - at(kl, token),
  );
  return {
    shapedReward: origin?.shapedReward ?? reward,
    whitening: origin?.shaping.whitening,
    clip: origin?.shaping.clip,
    episode: columnOf(of(episode)),
    turns: columnOf(of(turns)),
    kl: columnOf(of(kl)),
    taught: columnOf(of(origin?.taught ?? 0)),
    mean: mean === undefined ? undefined : columnOf(of(mean)),
    scale,
  };
}

function at(values: number | ArrayLike<number>, token: number): number {
  return typeof values === "number" ? values : values[token]!;
}

/** Equal numbers as one. */
export function columnOf(values: number | ArrayLike<number>): TokenColumn {
  if (typeof values === "number") return values;
  const column = Float32Array.from(values);
  const [first = 0] = column;
  return column.every((value) => value === first) ? first : column;
}
