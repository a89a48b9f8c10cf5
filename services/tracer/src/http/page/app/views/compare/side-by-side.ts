/** Two rollouts of one task beside each other as chats: of two runs, or of two versions of one run. */

import { read, runPath } from "../../api.ts";
import type { RolloutAnswer, TaskRollout } from "../../api-types.ts";
import { h, link, replace } from "../../dom.ts";
import { number } from "../../format.ts";
import { outcomeBadge } from "../parts.ts";
import { chatMessages } from "../rollout/chat-messages.ts";

type Side = "left" | "right";

export interface SideBySideOptions {
  readonly taskId: string;
  readonly rollouts: readonly TaskRollout[];
  readonly runIds: readonly string[];
  readonly signal: AbortSignal;
  /** What the address says of a side: `run/slot`. */
  readonly chosen: (side: Side) => string | null;
  readonly keep: (change: Readonly<Record<string, string>>) => void;
}

/** More turns are not drawn here; the rollout's own view shows all. */
const MAX_TURNS = 60;

export function sideBySide({
  taskId,
  rollouts,
  runIds,
  signal,
  chosen,
  keep,
}: SideBySideOptions): HTMLElement {
  const keyOf = ({ runId, slot }: TaskRollout) => `${runId}/${slot}`;
  const first = rollouts[0];
  // At first the oldest version of the first run beside the newest of the last one.
  const last = rollouts.findLast(({ runId }) => runId === runIds.at(-1)) ?? rollouts.at(-1);
  const columnOf = (side: Side, preset: TaskRollout | undefined) => {
    const wanted = rollouts.find((rollout) => keyOf(rollout) === chosen(side)) ?? preset;
    const body = h("div", { class: "side-body" });
    const chooser = h(
      "select",
      { "aria-label": side === "left" ? "Left rollout" : "Right rollout", class: "side-chooser" },
      runIds.map((runId) =>
        h(
          "optgroup",
          { label: runId },
          rollouts
            .filter((rollout) => rollout.runId === runId)
            .map((rollout) =>
              h(
                "option",
                { value: keyOf(rollout), selected: rollout === wanted },
                `${rollout.split} ${rollout.step}: reward ${number(rollout.reward, 3)} (${rollout.slot})`,
              ),
            ),
        ),
      ),
    );
    const show = async () => {
      const rollout = rollouts.find((each) => keyOf(each) === chooser.value);
      if (rollout === undefined) return;
      try {
        replace(
          body,
          rolloutChat(
            await read<RolloutAnswer>(runPath(rollout.runId, "rollouts", rollout.slot), { signal }),
          ),
        );
      } catch (error) {
        if (!signal.aborted)
          replace(body, h("p", { class: "notice" }, error instanceof Error ? error.message : String(error)));
      }
    };
    chooser.addEventListener("change", () => {
      keep({ [side]: chooser.value });
      void show();
    });
    void show();
    return h("div", { class: "card side" }, chooser, body);
  };
  return h(
    "section",
    { class: "section", id: "side-by-side", "aria-label": "Two rollouts of one task" },
    h("div", { class: "section-head" }, h("h3", { class: "mono" }, taskId)),
    h("div", { class: "sides" }, columnOf("left", first), columnOf("right", last)),
  );
}

function rolloutChat(rollout: RolloutAnswer): HTMLElement {
  const { runId, slot, outcome, reward, turns } = rollout;
  return h(
    "div",
    {},
    h(
      "p",
      { class: "side-head small" },
      h("a", { class: "mono", href: link("runs", runId, "rollouts", slot) }, slot),
      outcomeBadge(outcome),
      h("strong", {}, `reward ${number(reward, 3)}`),
    ),
    turns.slice(0, MAX_TURNS).map(({ chat }) => chatMessages(chat)),
    turns.length > MAX_TURNS &&
      h(
        "p",
        { class: "small soft" },
        `${turns.length - MAX_TURNS} more turns are in the rollout's own view.`,
      ),
  );
}
