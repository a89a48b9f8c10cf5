/** What made the gradient of a step: the rollouts and tokens that added most to it. */

import { read, runPath } from "../../api.ts";
import type { StepGradientView } from "../../api-types.ts";
import { type Child, h, link } from "../../dom.ts";
import { count, number, percent, signed } from "../../format.ts";
import { cutText } from "../parts.ts";

type PolicyGradient = StepGradientView["policies"][number];
type TokenShare = PolicyGradient["topTokens"][number];

/** Reads it. @returns two cards for each policy that learnt; none where the step has no record of it. */
export async function gradientCards(runId: string, step: number, signal: AbortSignal): Promise<Child[]> {
  const path = runPath(runId, "steps", step, "gradient");
  const { policies } = await read<StepGradientView>(path, { signal, query: { orNone: 1 } });
  return policies
    .filter(({ topRollouts }) => topRollouts.length > 0)
    .flatMap((policy) => [rolloutsCard(runId, policy), tokensCard(runId, policy)]);
}

function rolloutsCard(
  runId: string,
  { policy, updates, updateCount, tokens: trained, rollouts, topRollouts }: PolicyGradient,
): Child {
  const norms = updates.map(({ gradNorm }) => gradNorm);
  const range = `norms from ${number(Math.min(...norms), 3)} to ${number(Math.max(...norms), 3)}`;
  return h(
    "div",
    { class: "card step-part" },
    h("h3", {}, policy === null ? "What made the gradient" : `What made the gradient of ${policy}`),
    h(
      "p",
      { class: "small soft" },
      `${count(updateCount)} updates on ${count(trained)} tokens of ${count(rollouts)} rollouts; ${range}.`,
    ),
    sharesTable(
      ["Rollout", "Share", "Tokens", "Reward", "Advantage"],
      topRollouts.map(({ slot, role, share, tokens, reward, advantage }) => [
        rolloutLink(runId, slot, role),
        percent(share, 2),
        count(tokens),
        number(reward, 3),
        signed(advantage, 3),
      ]),
    ),
  );
}

function tokensCard(runId: string, { policy, topTokens }: PolicyGradient): Child {
  return h(
    "div",
    { class: "card step-part" },
    h("h3", {}, policy === null ? "Tokens that added most" : `Tokens that added most for ${policy}`),
    sharesTable(
      ["Rollout", "Token", "Share", "Advantage", "Ratio", "Cut"],
      topTokens.map((token) => [
        rolloutLink(runId, token.slot, token.role),
        h("span", { class: "mono", title: placeOf(token) }, textOf(token)),
        percent(token.share, 2),
        signed(token.advantage, 3),
        number(token.ratio, 3),
        cutText(token.cut),
      ]),
    ),
  );
}

function rolloutLink(runId: string, slot: string, role: string | undefined): Child {
  return [
    h("a", { class: "slot-link mono", href: link("runs", runId, "rollouts", slot) }, slot),
    role !== undefined && h("span", { class: "small faint" }, ` ${role}`),
  ];
}

function textOf({ text, tokenId }: TokenShare): string {
  return text === undefined ? `#${tokenId}` : JSON.stringify(text);
}

function placeOf({ sample, position }: TokenShare): string {
  return `token ${count(position)} of sample ${count(sample)}`;
}

/** @param rows the first cell stands at the left, the others at the right. */
function sharesTable(head: readonly string[], rows: readonly (readonly Child[])[]): Child {
  const side = (column: number) => (column === 0 ? null : "right");
  return h(
    "table",
    {},
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        head.map((name, column) => h("th", { class: side(column), scope: "col" }, name)),
      ),
    ),
    h(
      "tbody",
      {},
      rows.map((row) =>
        h(
          "tr",
          {},
          row.map((cell, column) => h("td", { class: side(column) }, cell)),
        ),
      ),
    ),
  );
}
