/** Prints what made the gradient of a step. */

import { z } from "zod";
import { figure, percentText, tokenText } from "../format.ts";
import { table } from "../terminal.ts";

const number = z.number();
const policySchema = z.object({
  policy: z.string().nullable(),
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
    z.object({
      slot: z.string(),
      role: z.string().optional(),
      tokens: number,
      reward: number,
      advantage: number,
      share: number,
    }),
  ),
  topTokens: z.array(
    z.object({
      slot: z.string(),
      role: z.string().optional(),
      sample: number,
      position: number,
      tokenId: number,
      text: z.string().optional(),
      share: number,
      advantage: number,
      ratio: number,
      coefficient: number,
      cut: z.string(),
    }),
  ),
});
/** The answer of `/api/runs/:run/steps/:step/gradient`. */
export const gradientSchema = z.object({
  step: number,
  /** One for each policy that learnt, the run's own first. */
  policies: z.array(policySchema),
});
type GradientAnswer = z.output<typeof gradientSchema>;
type PolicyAnswer = GradientAnswer["policies"][number];

/** Updates that are shown one by one. */
const MAX_UPDATES = 16;

/** From the norm of a step's gradient to the rollouts and tokens that made most of it, policy by policy. */
export function gradientLines(runId: string, { step, policies }: GradientAnswer): string[] {
  return policies.flatMap((policy, i) => [
    ...(i === 0 ? [] : [""]),
    ...policyLines(`step ${step} of ${runId}`, policy),
  ]);
}

function policyLines(name: string, answer: PolicyAnswer): string[] {
  const { policy, updates, updateCount, rollouts, tokens, recordedRollouts, cuts } = answer;
  const { topRollouts, topTokens } = answer;
  const learner = policy === null ? "" : `, policy ${policy}`;
  const cutText = Object.entries(cuts)
    .filter(([kind]) => kind !== "none")
    .map(([kind, count]) => `${count} ${kind}`)
    .join(", ");
  const hasRoles = [...topRollouts, ...topTokens].some(({ role }) => role !== undefined);
  const roleCells = (text: string | undefined) => (hasRoles ? [text ?? ""] : []);
  return [
    `${name}${learner}: ${updateCount} update${updateCount === 1 ? "" : "s"} on ${tokens} tokens of ${rollouts} rollouts; ${recordedRollouts} rollouts are recorded token by token`,
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
      ["rollout", ...roleCells("role"), "share", "tokens", "reward", "advantage"],
      ...topRollouts.map((each) => [
        each.slot,
        ...roleCells(each.role),
        percentText(each.share),
        String(each.tokens),
        figure(each.reward),
        figure(each.advantage),
      ]),
    ]),
    "",
    ...table([
      [
        "token of",
        ...roleCells("role"),
        "sample",
        "place",
        "token",
        "share",
        "advantage",
        "ratio",
        "cut",
        "dloss/dlogp",
      ],
      ...topTokens.map((each) => [
        each.slot,
        ...roleCells(each.role),
        String(each.sample),
        String(each.position),
        tokenText(each.tokenId, each.text),
        percentText(each.share),
        figure(each.advantage),
        figure(each.ratio),
        each.cut === "none" ? "" : each.cut,
        figure(each.coefficient),
      ]),
    ]),
  ];
}
