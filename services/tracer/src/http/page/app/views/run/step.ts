/** One step of a run: who worked when, how old its tokens were, and what was not trained and why. */

import { ApiError, read, runPath } from "../../api.ts";
import type { Series, StepTimeline } from "../../api-types.ts";
import { laneChart, phaseLegend } from "../../charts/lanes.ts";
import { type Child, h, replace } from "../../dom.ts";
import { count, duration, percent } from "../../format.ts";
import { everySecond } from "../../live.ts";
import { gradientCards } from "./step-gradient.ts";

/** While the newest step is shown, or its last spans may still arrive, the timeline is read again after this time. */
const RELOAD_MS = 5_000;
/** Services send their spans within seconds of the work. */
const SETTLED_MS = 10_000;
/** The metric that counts the tokens of an age. */
const AGE = /^staleness\/(\d+)$/;

/** Metrics that count what was not trained: what, and why. */
const NOT_TRAINED: readonly (readonly [name: string, what: string, why: string])[] = [
  ["groups/too_old", "groups given up", "their tokens had grown too old"],
  ["groups/empty", "groups left out", "none of their rollouts could be scored"],
  ["groups/flat", "groups without a gradient", "their rewards are all equal"],
  ["groups/filtered", "groups left out", "dynamic sampling expects nothing of them"],
  ["groups/surplus", "groups left out", "the step had enough that teach"],
  ["rollouts/unneeded", "rollouts ended early", "enough others were complete before them"],
  ["outcome/infra_failed", "rollouts left out", "something outside the agent failed"],
  ["outcome/cancelled", "rollouts left out", "they were cancelled"],
  ["outcome/stale", "rollouts left out", "their tokens had grown too old"],
];

type TimelineAnswer = StepTimeline & {
  readonly rollouts: { readonly drawn: number; readonly total: number };
};

/** The section of a step. It follows the newest step unless another one was chosen. */
export interface StepSection {
  readonly element: HTMLElement;
  update(series: Series): void;
}

export function stepSection({
  runId,
  signal,
}: {
  readonly runId: string;
  readonly signal: AbortSignal;
}): StepSection {
  let series: Series = { steps: [], timesMs: [], metrics: {} };
  let chosen: number | undefined;
  let shown: number | undefined;
  let loadedAtMs = 0;
  let isLoading = false;
  const chooser = stepChooser((step) => {
    chosen = step;
    loadedAtMs = 0;
    void refresh();
  });
  const timeline = h("div", { class: "card step-timeline" });
  const parts = h("div", { class: "step-parts" });
  const gradient = h("div", { class: "step-parts", id: "step-gradient" });
  const element = h(
    "section",
    { class: "section", id: "step", hidden: true },
    h("div", { class: "section-head" }, h("h2", {}, "Step"), chooser.element),
    timeline,
    parts,
    gradient,
  );

  async function refresh() {
    const newest = series.steps.at(-1);
    const step = chosen ?? newest;
    if (step === undefined || isLoading) return;
    const endedAtMs = series.timesMs[series.steps.indexOf(step)] ?? 0;
    const isSettled = step === shown && loadedAtMs - endedAtMs > SETTLED_MS;
    if (isSettled || Date.now() - loadedAtMs < RELOAD_MS) return;
    isLoading = true;
    shown = step;
    loadedAtMs = Date.now();
    chooser.update({
      step,
      first: series.steps[0] ?? step,
      newest: newest ?? step,
      isFollowing: chosen === undefined,
    });
    replace(parts, ageCard(series, step), notTrainedCard(series, step));
    void showGradient(step);
    if (!hasTimes(series, step)) {
      replace(timeline, h("p", { class: "small soft" }, "It is not known who worked when in this step."));
      isLoading = false;
      return;
    }
    try {
      replace(timeline, timelineOf(await read(runPath(runId, "steps", step, "timeline"), { signal })));
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof ApiError)) throw error;
      replace(timeline, h("p", { class: "small soft" }, error.message));
    } finally {
      isLoading = false;
    }
  }

  async function showGradient(step: number) {
    try {
      const cards = await gradientCards(runId, step, signal);
      if (step === shown) replace(gradient, cards);
    } catch (error) {
      if (!signal.aborted) reportError(error);
    }
  }

  everySecond(signal, () => void refresh());
  return {
    element,
    update(next: Series) {
      series = next;
      element.hidden = series.steps.length === 0;
      void refresh();
    },
  };
}

/** Whether its trainer told how long the step took; one that died right after the commit did not. */
function hasTimes({ steps, metrics }: Series, step: number): boolean {
  return (metrics["time/step_ms"]?.[steps.indexOf(step)] ?? 0) > 0;
}

interface ChooserState {
  readonly step: number;
  readonly first: number;
  readonly newest: number;
  readonly isFollowing: boolean;
}

/** Chooses a step. @param onChange called with the step, or undefined for the newest one, whichever that is. */
function stepChooser(onChange: (step: number | undefined) => void) {
  const input = h("input", { type: "number", name: "step", "aria-label": "Step", min: 1 });
  const back = h("button", { class: "button", type: "button", "aria-label": "Step before" }, "‹");
  const forth = h("button", { class: "button", type: "button", "aria-label": "Next step" }, "›");
  const newestButton = h("button", { class: "button", type: "button" }, "Newest");
  let state: ChooserState = { step: 0, first: 1, newest: 0, isFollowing: true };
  const go = (step: number) => {
    if (step >= state.first && step <= state.newest) onChange(step);
  };
  back.addEventListener("click", () => go(state.step - 1));
  forth.addEventListener("click", () => go(state.step + 1));
  newestButton.addEventListener("click", () => onChange(undefined));
  input.addEventListener("change", () => go(Number(input.value)));
  return {
    element: h("div", { class: "step-chooser" }, back, input, forth, newestButton),
    update(next: ChooserState) {
      state = next;
      const { step, first, newest, isFollowing } = state;
      input.max = String(newest);
      if (document.activeElement !== input) input.value = String(step);
      back.disabled = step <= first;
      forth.disabled = step >= newest;
      newestButton.setAttribute("aria-pressed", String(isFollowing));
    },
  };
}

function timelineOf(answer: TimelineAnswer): Child {
  const { drawn, total } = answer.rollouts;
  return [
    h(
      "div",
      { class: "section-head" },
      h("h3", {}, "Who worked when"),
      h("span", { class: "small faint" }, `${duration(answer.durationMs)} in all`),
      phaseLegend(answer.phases),
    ),
    laneChart(answer),
    drawn < total &&
      h(
        "p",
        { class: "small soft step-note" },
        drawn === 0
          ? "Engines, agents, tools and judge are not drawn, because the spans of these rollouts were not recorded or are no longer kept."
          : `The spans of ${count(drawn)} of ${count(total)} rollouts are drawn; the others were not recorded, are no longer kept, or are too many.`,
      ),
  ];
}

/** A histogram of the tokens by their age; nothing where the run is synchronous. */
function ageCard({ steps, metrics }: Series, step: number): Child {
  const row = steps.indexOf(step);
  const ages = Object.entries(metrics)
    .flatMap(([name, values]) => {
      const age = AGE.exec(name)?.[1];
      return age === undefined ? [] : [[Number(age), values[row] ?? 0] as const];
    })
    .toSorted(([a], [b]) => a - b);
  const total = ages.reduce((sum, [, tokens]) => sum + tokens, 0);
  if (total === 0) return null;
  const most = Math.max(...ages.map(([, tokens]) => tokens));
  return h(
    "div",
    { class: "card step-part", id: "token-ages" },
    h("h3", {}, "Age of the trained tokens"),
    h(
      "table",
      { class: "ages" },
      h(
        "tbody",
        {},
        ages.map(([age, tokens]) =>
          h(
            "tr",
            {},
            h("td", {}, age === 1 ? "1 version" : `${count(age)} versions`),
            h(
              "td",
              { class: "age-cell" },
              tokens > 0 && h("span", { class: "age-bar", vars: { share: tokens / most } }),
            ),
            h("td", { class: "right" }, count(tokens)),
            h("td", { class: "right soft" }, percent(tokens / total)),
          ),
        ),
      ),
    ),
  );
}

/** What was not trained, in the step and in all steps; nothing where all was. */
function notTrainedCard({ steps, metrics }: Series, step: number): Child {
  const row = steps.indexOf(step);
  const rows = NOT_TRAINED.flatMap(([name, what, why]) => {
    const values = metrics[name] ?? [];
    const all = values.reduce<number>((sum, value) => sum + (value ?? 0), 0);
    return all === 0 ? [] : [{ what, why, inStep: values[row] ?? 0, all }];
  });
  if (rows.length === 0) return null;
  return h(
    "div",
    { class: "card step-part", id: "not-trained" },
    h("h3", {}, "What was not trained, and why"),
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, "What and why"),
          h("th", { class: "right", scope: "col" }, `Step ${step}`),
          h("th", { class: "right", scope: "col" }, "All steps"),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map(({ what, why, inStep, all }) =>
          h(
            "tr",
            {},
            h("td", {}, what, h("span", { class: "soft" }, `: ${why}`)),
            h("td", { class: "right" }, count(inStep)),
            h("td", { class: "right" }, count(all)),
          ),
        ),
      ),
    ),
  );
}
