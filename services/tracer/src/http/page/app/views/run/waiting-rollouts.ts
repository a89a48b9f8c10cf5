/** The rollouts of a run that wait for a reward of a person, with links to where it is given. */

import { read, runPath } from "../../api.ts";
import type { WaitingRollout } from "../../api-types.ts";
import { h, link, replace } from "../../dom.ts";
import { count, duration } from "../../format.ts";
import { sinceText, tableHead } from "../parts.ts";

/** More rows are not drawn. */
const MAX_ROWS = 50;

export interface WaitingRollouts {
  readonly element: HTMLElement;
  refresh(): Promise<void>;
}

export function waitingRollouts(runId: string, signal: AbortSignal): WaitingRollouts {
  const element = h("section", { class: "section", id: "waiting", hidden: true });
  return {
    element,
    async refresh() {
      const { waiting } = await read<{ readonly waiting: readonly WaitingRollout[] }>(
        runPath(runId, "waiting"),
        {
          signal,
        },
      );
      element.hidden = waiting.length === 0;
      const columns = [["Rollout"], ["Judge"], ["Waits", true], ["Time left", true]] as const;
      const ordered = waiting.toSorted((a, b) => a.untilMs - b.untilMs);
      replace(
        element,
        h(
          "div",
          { class: "section-head" },
          h("h2", {}, "Waiting for your reward"),
          h("span", { class: "small faint" }, count(waiting.length)),
        ),
        h(
          "div",
          { class: "card table-wrap" },
          h(
            "table",
            {},
            tableHead(columns),
            h(
              "tbody",
              {},
              ordered
                .slice(0, MAX_ROWS)
                .map(({ slot, judges, sinceMs, untilMs }) =>
                  h(
                    "tr",
                    {},
                    h("td", {}, h("a", { class: "mono", href: link("runs", runId, "waiting", slot) }, slot)),
                    h("td", {}, judges.join(", ")),
                    h("td", { class: "right" }, sinceText(sinceMs)),
                    h("td", { class: "right" }, duration(untilMs - Date.now())),
                  ),
                ),
            ),
          ),
        ),
      );
    },
  };
}
