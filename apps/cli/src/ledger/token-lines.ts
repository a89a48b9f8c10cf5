/** Prints the trained tokens of a rollout, and what made the gradient of a step. */

import { z } from "zod";
import { figure } from "../format.ts";
import { table } from "../terminal.ts";

const number = z.number();
const passSchema = z.object({
  epoch: number,
  minibatch: number,
  logprob: number,
  ratio: number,
  cut: z.string(),
  coefficient: number,
  klCoefficient: number.nullable(),
  pull: number,
});

/** The answer of `/api/runs/:run/rollouts/:slot/tokens`. */
export const rolloutTokensSchema = z.object({
  slot: z.string(),
  step: number,
  reward: number,
  shapedReward: number,
  whitening: z.object({ mean: number, scale: number }).nullable(),
  advantageClip: number.nullable(),
  share: number,
  tokens: z.array(
    z.object({
      sample: number,
      position: number,
      id: number,
      text: z.string().optional(),
      behaviourLogprob: number,
      oldLogprob: number,
      referenceLogprob: number.nullable(),
      advantage: number,
      parts: z.object({
        episode: number,
        turns: number,
        kl: number,
        taught: number,
        mean: number.nullable(),
        scale: number.nullable(),
      }),
      weight: number,
      correction: number.nullable(),
      share: number,
      passes: z.array(passSchema),
    }),
  ),
});
export type RolloutTokensAnswer = z.output<typeof rolloutTokensSchema>;

/** The answer of `/api/runs/:run/steps/:step/gradient`. */
export const gradientSchema = z.object({
  step: number,
  updates: z.array(
    z.object({
      epoch: number,
      minibatch: number,
      loss: number,
      gradNorm: number,
      scaledBy: number,
      tokens: number,
    }),
  ),
  updateCount: number,
  rollouts: number,
  tokens: number,
  recordedRollouts: number,
  recordedTokens: number,
  cuts: z.record(z.string(), number),
  pull: number,
  topRollouts: z.array(
    z.object({ slot: z.string(), tokens: number, reward: number, advantage: number, share: number }),
  ),
  topTokens: z.array(
    z.object({
      slot: z.string(),
      sample: number,
      position: number,
      tokenId: number,
      share: number,
      advantage: number,
      ratio: number,
      coefficient: number,
      cut: z.string(),
    }),
  ),
});
export type GradientAnswer = z.output<typeof gradientSchema>;

/** Updates that are shown one by one. */
const MAX_UPDATES = 16;

/** A rollout's tokens as a table; the figures of an update are those of its last. */
export function rolloutLines(runId: string, answer: RolloutTokensAnswer): string[] {
  const { slot, step, reward, shapedReward, whitening, advantageClip, share, tokens } = answer;
  const [first] = tokens;
  const shaped = shapedReward === reward ? "" : ` (${figure(shapedReward)} as shaped)`;
  return [
    `${runId}/${slot}, trained by step ${step}: reward ${figure(reward)}${shaped}, ${percentText(share)} of the step's gradient`,
    ...(first === undefined ? [] : [advantageLine(first, whitening, advantageClip)]),
    "",
    ...table([headOf(tokens), ...tokens.map((token) => tokenRow(token, columnsOf(tokens)))]),
  ];
}

type Token = RolloutTokensAnswer["tokens"][number];

interface Columns {
  readonly hasSamples: boolean;
  readonly hasReference: boolean;
  readonly hasParts: boolean;
  readonly hasCorrection: boolean;
}

function columnsOf(tokens: readonly Token[]): Columns {
  return {
    hasSamples: tokens.some(({ sample }) => sample > 0),
    hasReference: tokens.some(({ referenceLogprob }) => referenceLogprob !== null),
    hasParts: tokens.some(({ parts }) => parts.turns !== 0 || parts.kl !== 0 || parts.taught !== 0),
    hasCorrection: tokens.some(({ correction }) => correction !== null),
  };
}

function headOf(tokens: readonly Token[]): string[] {
  const { hasSamples, hasReference, hasParts, hasCorrection } = columnsOf(tokens);
  return [
    "place",
    "token",
    ...(hasSamples ? ["sample"] : []),
    "advantage",
    ...(hasParts ? ["episode", "turns", "kl", "teachers"] : []),
    "sampled",
    "trained",
    ...(hasReference ? ["reference"] : []),
    "ratio",
    "cut",
    ...(hasCorrection ? ["correction"] : []),
    "weight",
    "dloss/dlogp",
    "share",
  ];
}

function tokenRow(token: Token, { hasSamples, hasReference, hasParts, hasCorrection }: Columns): string[] {
  const { parts } = token;
  const last = token.passes.at(-1);
  return [
    String(token.position),
    token.text === undefined ? `#${token.id}` : JSON.stringify(token.text),
    ...(hasSamples ? [String(token.sample)] : []),
    figure(token.advantage),
    ...(hasParts ? [parts.episode, parts.turns, parts.kl, parts.taught].map(figure) : []),
    figure(token.behaviourLogprob),
    figure(last?.logprob),
    ...(hasReference ? [figure(token.referenceLogprob ?? undefined)] : []),
    figure(last?.ratio),
    last === undefined || last.cut === "none" ? "" : last.cut,
    ...(hasCorrection ? [figure(token.correction ?? undefined)] : []),
    figure(token.weight),
    figure(last?.coefficient),
    percentText(token.share),
  ];
}

function advantageLine(
  { parts: { mean, scale } }: Token,
  whitening: RolloutTokensAnswer["whitening"],
  clip: number | null,
): string {
  const said = [
    mean === null ? undefined : `compared with ${figure(mean)}`,
    scale === null ? undefined : `divided by ${figure(scale)}`,
    whitening === null
      ? undefined
      : `whitened: less ${figure(whitening.mean)}, divided by ${figure(whitening.scale)}`,
    clip === null ? undefined : `kept within ${figure(clip)}`,
  ].filter((each) => each !== undefined);
  return `advantage: ${said.length === 0 ? "as its algorithm made it" : said.join("; ")}`;
}

/** From the norm of a step's gradient to the rollouts and tokens that made most of it. */
export function gradientLines(
  runId: string,
  answer: GradientAnswer,
  textOf: (tokenId: number) => string | undefined,
): string[] {
  const { step, updates, updateCount, rollouts, tokens, recordedRollouts, cuts } = answer;
  const cutText = Object.entries(cuts)
    .filter(([name]) => name !== "none")
    .map(([name, count]) => `${count} ${name}`)
    .join(", ");
  return [
    `step ${step} of ${runId}: ${updateCount} update${updateCount === 1 ? "" : "s"} on ${tokens} tokens of ${rollouts} rollouts; ${recordedRollouts} rollouts are recorded token by token`,
    `cut in all updates: ${cutText === "" ? "none" : cutText}`,
    "",
    ...table([
      ["epoch", "minibatch", "loss", "gradient norm", "scaled by", "tokens"],
      ...updates
        .slice(0, MAX_UPDATES)
        .map((each) => [
          String(each.epoch),
          String(each.minibatch),
          figure(each.loss),
          figure(each.gradNorm),
          figure(each.scaledBy),
          String(each.tokens),
        ]),
    ]),
    ...(updateCount > MAX_UPDATES ? [`… and ${updateCount - MAX_UPDATES} more updates`] : []),
    "",
    ...table([
      ["rollout", "share", "tokens", "reward", "advantage"],
      ...answer.topRollouts.map((each) => [
        each.slot,
        percentText(each.share),
        String(each.tokens),
        figure(each.reward),
        figure(each.advantage),
      ]),
    ]),
    "",
    ...table([
      ["token of", "sample", "place", "token", "share", "advantage", "ratio", "cut", "dloss/dlogp"],
      ...answer.topTokens.map((each) => {
        const text = textOf(each.tokenId);
        return [
          each.slot,
          String(each.sample),
          String(each.position),
          text === undefined ? `#${each.tokenId}` : JSON.stringify(text),
          percentText(each.share),
          figure(each.advantage),
          figure(each.ratio),
          each.cut === "none" ? "" : each.cut,
          figure(each.coefficient),
        ];
      }),
    ]),
  ];
}

function percentText(share: number): string {
  return `${(share * 100).toFixed(2)} %`;
}
