/** The view of a rollout that has ended and waits for the reward of a person: its turns, and the form for the reward. */

import { canWrite, READ_ONLY } from "../access.ts";
import { read, runPath, send } from "../api.ts";
import type { WaitingAnswer } from "../api-types.ts";
import { confirmed } from "../confirm-dialog.ts";
import { h, link, replace } from "../dom.ts";
import { ago, duration } from "../format.ts";
import type { ViewContext } from "../view.ts";
import { chatMessages } from "./rollout/chat-messages.ts";

export async function waitingView({ root, params, signal, setPlace, navigate }: ViewContext): Promise<void> {
  const { run: runId = "", slot = "" } = params;
  setPlace(`${slot} waits`, [[runId, link("runs", runId)], [`${slot} waits`]]);
  const path = runPath(runId, "waiting", slot);
  const [rollout, mayWrite] = await Promise.all([read<WaitingAnswer>(path, { signal }), canWrite()]);
  replace(
    root,
    h(
      "div",
      { class: "run-head" },
      h("h1", { class: "mono" }, slot),
      h("span", { class: "badge" }, "waits for a reward"),
    ),
    h(
      "p",
      { class: "soft" },
      `It ended ${ago(rollout.sinceMs)}. There is time for its reward for another ${duration(rollout.untilMs - Date.now())}.`,
    ),
    mayWrite
      ? rewardForm(rollout, path, () => navigate(link("runs", runId)))
      : h("p", { class: "small soft" }, READ_ONLY),
    h(
      "section",
      { class: "section turns" },
      rollout.turns.map(({ index, chat }) =>
        h(
          "section",
          { class: "card turn", "aria-label": `Turn ${index + 1}` },
          h("div", { class: "turn-side" }, h("h3", {}, `Turn ${index + 1}`)),
          h("div", { class: "turn-main turn-alone" }, chatMessages(chat)),
        ),
      ),
    ),
  );
}

/** @param onDone called when the rollout waits for nothing more. */
function rewardForm({ judges, slot }: WaitingAnswer, path: string, onDone: () => void): HTMLElement {
  const value = h("input", { type: "number", name: "value", step: "any", required: true });
  const reason = h("input", { name: "reason", maxlength: 2_000, class: "reason-input" });
  const judge = h(
    "select",
    { name: "judge" },
    judges.map((name) => h("option", { value: name }, name)),
  );
  const told = h("p", { class: "small", role: "status" });
  const button = h("button", { class: "button button-main", type: "submit" }, "Give the reward");
  const form = h(
    "form",
    { class: "card note-form reward-form", "aria-label": "Reward" },
    h(
      "div",
      { class: "note-fields" },
      h("label", {}, "For the judge", judge),
      h("label", {}, "Reward", value),
      h("label", { class: "reason-label" }, "Why", reason),
      button,
    ),
    told,
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const agrees = await confirmed({
      title: `Give ${slot} the reward ${value.value}?`,
      text: "The first reward counts and cannot be changed: the run trains with it.",
      action: "Give the reward",
    });
    if (!agrees) return;
    button.disabled = true;
    try {
      const given = { value: Number(value.value), judge: judge.value, reason: reason.value };
      const { awaited } = await send<{ readonly awaited: readonly string[] }>(
        "POST",
        `${path}/reward`,
        given,
      );
      if (awaited.length === 0) return onDone();
      told.textContent = `It counts. The rollout still waits for ${awaited.join(", ")}.`;
      for (const option of judge.options) option.disabled = !awaited.includes(option.value);
      judge.value = awaited[0] ?? "";
    } catch (error) {
      told.textContent = error instanceof Error ? error.message : String(error);
    } finally {
      button.disabled = false;
    }
  });
  return form;
}
