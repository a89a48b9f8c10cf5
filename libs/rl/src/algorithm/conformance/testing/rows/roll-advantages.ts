/** ROLL's returns and advantages, stage by stage. */

import { segmentReturns } from "../../../advantage/turn/agentic-reinforce.ts";
import { discountedReturns, generalizedAdvantages } from "../../../returns.ts";
import { clip, type Repeated, whitenerOf } from "../../../statistics.ts";
import { compact, masked, rowSums, segmentsOf, spread } from "../dense.ts";
import type { Matrix, Question } from "../golden.ts";
import { gaeUnderMask, returnsUnderMask } from "../naive.ts";
import type { Check, Row } from "../row.ts";
import { figuresCheck } from "./rewards.ts";

export const Q3 =
  "rewards stand on sampled tokens, so none is lost; the formula is compared on those that ROLL keeps";
export const Q10 =
  "places are sampled tokens alone; with every position given as one the formula makes ROLL's numbers";

export const rollAdvantageRows: readonly Row[] = [
  {
    family: "roll/return",
    functions: ["compute_reinforce_return"],
    hone: "discountedReturns",
    quirks: { Q10 },
    answer: (question) => {
      const gamma = question.number("gamma");
      const rewards = question.matrix("token_level_rewards");
      const returns = rewards.map((row) => discountedReturns(row, gamma));
      return [
        { field: "advantages", actual: returns },
        { field: "returns", actual: returns },
        ...onSampledTokens(question, rewards, "reinforce"),
      ];
    },
  },
  {
    family: "roll/return",
    functions: ["compute_gae_advantage_return"],
    hone: "generalizedAdvantages",
    quirks: { Q10 },
    answer: (question) => {
      const options = { gamma: question.number("gamma"), lambda: question.number("lambd") };
      const values = question.matrix("values");
      const rewards = question.matrix("token_level_rewards");
      const rows = rewards.map((row, i) => generalizedAdvantages(row, values[i]!, options));
      return [
        { field: "advantages", actual: rows.map(({ advantages }) => advantages) },
        { field: "returns", actual: rows.map(({ returns }) => returns) },
        ...onSampledTokens(question, rewards, "gae"),
      ];
    },
  },
  {
    family: "roll/return",
    functions: ["compute_agentic_reinforce_return"],
    hone: "segmentReturns",
    answer: (question) => {
      const mask = question.matrix("mask");
      const returns = segmentRows(question.matrix("token_level_rewards"), mask, question.number("gamma"));
      return [
        { field: "advantages", actual: returns },
        { field: "returns", actual: returns },
      ];
    },
  },
  {
    family: "roll/whiten",
    hone: "whitenerOf",
    answer: (question) => {
      const values = question.matrix("values");
      const mask = question.matrix("mask");
      const whiten = whitenerOf(repeated(values, mask), { shiftMean: question.flag("shift_mean") });
      return [{ field: "whitened", actual: values.map((row) => row.map(whiten)) }];
    },
  },
  {
    family: "roll/advantage",
    functions: ["agentic_compute_advantage"],
    hone: "reinforce, gae, agentic_reinforce; whiten and clip of algorithm.advantage",
    quirks: { Q3, Q10 },
    answer: (question) => {
      const mask = question.matrix("response_mask");
      const given = question.matrix("token_level_rewards");
      const rewards = question.flag("whiten_rewards") ? whitened(given, mask) : given;
      const stages = advantageStages(question, masked(rewards, mask), {
        whitens: question.flag("whiten_advantages"),
        limit: question.optionalNumber("advantage_clip") ?? null,
      });
      return [
        { field: "advantages", actual: stages.advantages },
        { field: "returns", actual: stages.returns },
        { field: "raw_advantages", actual: stages.raw },
        figuresCheck(question.expected<Record<string, number>>("metrics") ?? {}, {
          "critic/advantage_clip_frac": stages.clippedShare,
        }),
        ...onSampledTokens(question, masked(rewards, mask)),
      ];
    },
  },
];

/** Whitened under the mask, 0 elsewhere. */
export function whitened(values: Matrix, mask: Matrix): number[][] {
  const whiten = whitenerOf(repeated(values, mask));
  return masked(
    values.map((row) => row.map(whiten)),
    mask,
  );
}

function repeated(values: Matrix, mask: Matrix): Repeated[] {
  return values.flatMap((row, i) => row.map((value, t) => ({ value, count: mask[i]![t]! })));
}

interface Stages {
  readonly raw: Matrix;
  readonly returns: Matrix;
  readonly advantages: number[][];
  /** A share of all positions, as ROLL counts; Hone's figure counts sampled tokens. */
  readonly clippedShare: number;
}

/** ROLL's order: returns, whitening, the mask, clipping. @param rewards [rows by positions] */
export function advantageStages(
  question: Question,
  rewards: Matrix,
  { whitens, limit }: { readonly whitens: boolean; readonly limit: number | null },
): Stages {
  const mask = question.matrix("response_mask");
  const estimator = question.text("adv_estimator");
  const gamma = question.number("gamma");
  const { raw, returns } = estimatesOf(question, estimator, rewards, gamma);
  const shaped = whitens ? whitened(raw, mask) : masked(raw, mask);
  const advantages = shaped.map((row) => row.map((value) => clip(value, limit)));
  const before = shaped.flat();
  const clipped = advantages.flat().filter((value, index) => value !== before[index]).length;
  return { raw, returns, advantages, clippedShare: clipped / before.length };
}

function estimatesOf(
  question: Question,
  estimator: string,
  rewards: Matrix,
  gamma: number,
): { readonly raw: Matrix; readonly returns: Matrix } {
  if (estimator === "gae") {
    const options = { gamma, lambda: question.number("lambd") };
    const rows = rewards.map((row, i) => generalizedAdvantages(row, question.matrix("values")[i]!, options));
    return { raw: rows.map(({ advantages }) => advantages), returns: rows.map(({ returns }) => returns) };
  }
  const mask = question.matrix("response_mask");
  const returns =
    estimator === "agentic_reinforce"
      ? segmentRows(endsOfSegments(rewards, mask), mask, gamma)
      : rewards.map((row) => discountedReturns(row, gamma));
  return { raw: returns, returns };
}

/** Q11: ROLL takes of a segment what stands on its last token. */
function endsOfSegments(rewards: Matrix, mask: Matrix): number[][] {
  return rewards.map((row, i) => row.map((reward, t) => (mask[i]![t + 1] === 1 ? 0 : reward)));
}

/** Returns of segments at the positions of their tokens; each run of sampled tokens is a turn. */
function segmentRows(rewards: Matrix, mask: Matrix, gamma: number): number[][] {
  return rewards.map((row, i) => {
    const bits = mask[i]!;
    const segments = segmentsOf(bits);
    const turns = bits.flatMap((bit, t) => (bit === 1 ? [segments.findIndex(([, end]) => t < end)] : []));
    const returns = segmentReturns(
      { turns: Int32Array.from(turns), rewards: Float64Array.from(compact(row, bits)) },
      gamma,
    );
    return spread(returns, bits);
  });
}

/** Q11: of a turn everything counts that stands on its tokens: undiscounted, the first return is all that a row earned. */
function wholeSegments(question: Question, rewards: Matrix): Check[] {
  const mask = question.matrix("response_mask");
  const returns = segmentRows(rewards, mask, 1);
  return [
    {
      field: "the first return of a row",
      actual: returns.map((row, i) => row[mask[i]!.indexOf(1)] ?? 0),
      expected: rowSums(rewards),
      quirk: "Q11",
    },
  ];
}

/**
 * Q10: what Hone makes of the sampled tokens alone, with nothing counted between them.
 * @param rewards [rows by positions] 0 where nothing was sampled, but for a function that knows no mask.
 */
export function onSampledTokens(
  question: Question,
  rewards: Matrix,
  estimator = question.text("adv_estimator"),
): Check[] {
  if (estimator === "agentic_reinforce") return wholeSegments(question, rewards);
  const mask = question.has("response_mask")
    ? question.matrix("response_mask")
    : question.ofSet<Matrix>("response_mask");
  const gamma = question.number("gamma");
  const field = `${estimator} of sampled tokens`;
  if (estimator !== "gae") {
    return [
      {
        field,
        actual: rewards.map((row, i) => spread(discountedReturns(compact(row, mask[i]!), gamma), mask[i]!)),
        expected: rewards.map((row, i) => returnsUnderMask(row, mask[i]!, gamma)),
        quirk: "Q10",
      },
    ];
  }
  const lambda = question.number("lambd");
  const values = question.matrix("values");
  return [
    {
      field,
      actual: rewards.map((row, i) => {
        const bits = mask[i]!;
        const ofTokens = generalizedAdvantages(compact(row, bits), compact(values[i]!, bits), {
          gamma,
          lambda,
        });
        return spread(ofTokens.advantages, bits);
      }),
      expected: rewards.map((row, i) => gaeUnderMask(row, values[i]!, mask[i]!, gamma, lambda)),
      quirk: "Q10",
    },
  ];
}
