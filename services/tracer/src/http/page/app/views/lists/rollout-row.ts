/** One row of a list of rollouts, and below it the place where searched words stand. */

import type { ListedRollout } from "../../api-types.ts";
import { type Child, h, link } from "../../dom.ts";
import { count, type Maybe, milliseconds, number, signed } from "../../format.ts";
import { outcomeText } from "../parts.ts";

/** Advantages are normalised; the bar shows values beyond three like three. */
const WIDEST_ADVANTAGE = 3;
const PLACE_NAMES: Readonly<Record<string, string>> = {
  prompt: "prompt",
  answer: "answer",
  tool: "tool call",
  judge: "judge",
};

/** @param isOfAllRuns whether the row names its run. */
export function rolloutRow(rollout: ListedRollout, isOfAllRuns: boolean): Child {
  const { runId, slot, outcome, reward, advantage, turns, sampledTokens, totalTokens, durationMs, taskId } =
    rollout;
  const { attempt, notes, excerpt } = rollout;
  const href = link("runs", runId, "rollouts", slot);
  return [
    h(
      "tr",
      { data: { excerpt: excerpt === undefined || excerpt === null ? null : "yes" } },
      isOfAllRuns && h("td", {}, h("a", { href: link("runs", runId) }, runId)),
      h(
        "td",
        {},
        h("a", { class: "slot-link mono", href }, slot),
        attempt > 1 && h("span", { class: "small faint" }, ` attempt ${attempt}`),
        notes > 0 && h("span", { class: "small faint" }, notes === 1 ? " 1 note" : ` ${count(notes)} notes`),
      ),
      h("td", {}, outcomeText(outcome)),
      h("td", { class: "right" }, number(reward, 3)),
      h("td", {}, advantageMeter(advantage)),
      h("td", { class: "right" }, turns),
      h(
        "td",
        { class: "right", title: "sampled of all" },
        count(sampledTokens),
        h("span", { class: "faint" }, ` / ${count(totalTokens)}`),
      ),
      h("td", { class: "right" }, milliseconds(durationMs)),
      h("td", { class: "mono soft task-cell", title: taskId }, taskId),
    ),
    excerpt !== undefined &&
      excerpt !== null &&
      h(
        "tr",
        { class: "excerpt-row" },
        h(
          "td",
          { colspan: 9 },
          h(
            "a",
            { class: "excerpt small", href: excerpt.turn === null ? href : `${href}?turn=${excerpt.turn}` },
            h(
              "span",
              { class: "faint" },
              PLACE_NAMES[excerpt.place] ?? excerpt.place,
              excerpt.turn !== null && ` of turn ${excerpt.turn + 1}`,
              ": ",
            ),
            excerpt.before,
            h("mark", {}, excerpt.match),
            excerpt.after,
          ),
        ),
      ),
  ];
}

/** A bar to the left or right of the middle, with the number. */
export function advantageMeter(advantage: Maybe): HTMLElement {
  if (advantage === null || advantage === undefined) return h("span", { class: "faint" }, "–");
  const size = Math.min(1, Math.abs(advantage) / WIDEST_ADVANTAGE) / 2;
  const isUp = advantage >= 0;
  return h(
    "span",
    { class: "meter" },
    h(
      "span",
      { class: "meter-track", "aria-hidden": "true" },
      h("span", { data: { sign: isUp ? "up" : "down" }, vars: { from: isUp ? 0.5 : 0.5 - size, size } }),
    ),
    h("span", { class: "num" }, signed(advantage)),
  );
}
