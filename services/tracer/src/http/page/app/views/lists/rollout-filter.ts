/**
 * The filter of a list of rollouts: a search for words, and choices. All of it, and the sort, stands in the page's address, so an
 * address is a saved filter: it can be kept as a bookmark and sent to others.
 */

import type { Query } from "../../api.ts";
import { h } from "../../dom.ts";
import { OUTCOME_NAMES } from "../parts.ts";

/** Names of the fields, which are also those of the address and of the API. */
const FIELDS = [
  "q",
  "place",
  "split",
  "step",
  "task",
  "outcome",
  "minReward",
  "maxReward",
  "taskId",
  "noted",
] as const;
const SPLITS = ["train", "eval", "warm"];
/** Where words may stand, and how it is called. */
export const PLACES: Readonly<Record<string, string>> = {
  prompt: "prompts",
  answer: "answers",
  tool: "tool calls",
  judge: "judges' words",
};
/** While somebody types, this is waited for. */
const TYPING_MS = 250;

export interface RolloutFilter {
  readonly element: HTMLElement;
  /** The fields that are filled in. */
  values(): Query;
}

/** @param onChange called when a field has changed. */
export function rolloutFilter(onChange: () => void): RolloutFilter {
  const stored = new URLSearchParams(window.location.search);
  const choice = (name: string, label: string, values: Readonly<Record<string, string>>) =>
    h(
      "label",
      {},
      label,
      h(
        "select",
        { name },
        h("option", { value: "" }, "any"),
        Object.entries(values).map(([value, text]) =>
          h("option", { value, selected: stored.get(name) === value }, text),
        ),
      ),
    );
  const figure = (name: string, label: string, step: number | string) =>
    h(
      "label",
      {},
      label,
      h("input", { type: "number", name, step, value: stored.get(name), placeholder: "any" }),
    );
  const named = (values: readonly string[]) =>
    Object.fromEntries(values.map((value) => [value, value.replaceAll("_", " ")]));
  const search = h("input", {
    type: "search",
    name: "q",
    class: "search-input",
    value: stored.get("q"),
    maxlength: 1_000,
    placeholder: 'words, "in this order", -without, or',
    "aria-label": "Search prompts, answers, tool calls and judges' words",
  });
  const clear = h("button", { class: "button", type: "button" }, "Clear");
  const form = h(
    "form",
    { class: "filters", role: "search", "aria-label": "Filter rollouts" },
    h("div", { class: "search-row" }, search, choice("place", "in", PLACES)),
    choice("split", "Split", named(SPLITS)),
    figure("step", "Step", 1),
    figure("task", "Task", 1),
    choice("outcome", "Outcome", named(OUTCOME_NAMES)),
    figure("minReward", "Reward from", "any"),
    figure("maxReward", "to", "any"),
    h(
      "label",
      {},
      "Task id",
      h("input", { name: "taskId", value: stored.get("taskId"), placeholder: "any", maxlength: 1_000 }),
    ),
    choice("noted", "Notes", { yes: "with notes" }),
    clear,
  );
  const fieldOf = (name: string) => {
    const field = form.elements.namedItem(name);
    return field instanceof HTMLInputElement || field instanceof HTMLSelectElement ? field : undefined;
  };
  let timer: ReturnType<typeof setTimeout> | undefined;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    onChange();
  });
  form.addEventListener("input", (event) => {
    clearTimeout(timer);
    const isTyped = event.target instanceof HTMLInputElement && event.target.type !== "number";
    timer = setTimeout(onChange, isTyped ? TYPING_MS : 0);
  });
  // The form's own reset would bring back the values from the address.
  clear.addEventListener("click", () => {
    for (const name of FIELDS) {
      const field = fieldOf(name);
      if (field !== undefined) field.value = "";
    }
    onChange();
  });
  return {
    element: form,
    values: () =>
      Object.fromEntries(
        FIELDS.map((name) => [name, fieldOf(name)?.value.trim() ?? ""]).filter(([, value]) => value !== ""),
      ),
  };
}
