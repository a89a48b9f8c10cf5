/** Prints the trained tokens of a rollout. */

import { z } from "zod";
import { figure, percentText, tokenText } from "../format.ts";
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

const partSchema = z.object({
  role: z.string().nullable(),
  policy: z.string().nullable(),
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

/** The answer of `/api/runs/:run/rollouts/:slot/tokens`. */
export const rolloutTokensSchema = z.object({
  slot: z.string(),
  step: number,
  /** One for each role that played a part of the rollout. */
  parts: z.array(partSchema),
});
export type RolloutTokensAnswer = z.output<typeof rolloutTokensSchema>;
type Part = RolloutTokensAnswer["parts"][number];
type Token = Part["tokens"][number];

/** A rollout's tokens as a table for each part; the figures of an update are those of its last. */
export function rolloutLines(runId: string, { slot, step, parts }: RolloutTokensAnswer): string[] {
  return parts.flatMap((part, i) => [
    ...(i === 0 ? [] : [""]),
    ...partLines(
      `${runId}/${slot}${part.role === null ? "" : `, ${part.role}`}, trained by step ${step}`,
      part,
    ),
  ]);
}

function partLines(
  name: string,
  { policy, reward, shapedReward, whitening, advantageClip, share, tokens }: Part,
): string[] {
  const [first] = tokens;
  const shaped = shapedReward === reward ? "" : ` (${figure(shapedReward)} as shaped)`;
  const whole = policy === null ? "the step's gradient" : `the gradient of the policy ${policy}`;
  return [
    `${name}: reward ${figure(reward)}${shaped}, ${percentText(share)} of ${whole}`,
    ...(first === undefined ? [] : [advantageLine(first, whitening, advantageClip)]),
    "",
    ...table([headOf(tokens), ...tokens.map((token) => tokenRow(token, columnsOf(tokens)))]),
  ];
}

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
    tokenText(token.id, token.text),
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
  whitening: Part["whitening"],
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
