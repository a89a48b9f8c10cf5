/** The view of all runs: the state of each, what it waits for and for how long, and how it learns. */

import { read } from "../api.ts";
import type { ListedRun, Refusal } from "../api-types.ts";
import { sparkline } from "../charts/line-chart.ts";
import { type Child, h, link, replace } from "../dom.ts";
import { ago, count, duration, number, percent } from "../format.ts";
import { everySecond, onChange } from "../live.ts";
import type { ViewContext } from "../view.ts";
import { outcomeTone, phaseBadge, progressBar, progressOf, sinceText, troublesOf } from "./parts.ts";

interface RunsAnswer {
  readonly runs: readonly ListedRun[];
  readonly refusals: readonly Refusal[];
}

export async function runsView({ root, signal, setPlace }: ViewContext): Promise<void> {
  setPlace("", []);
  let data = await read<RunsAnswer>("/runs", { signal });
  const list = h("div", { class: "run-list" });
  const refused = h("section", { class: "section" });
  const total = h("span", { class: "faint", id: "run-count" });
  replace(root, h("div", { class: "section-head" }, h("h1", {}, "Runs"), total), list, refused);

  const draw = () => {
    total.textContent = data.runs.length === 0 ? "" : count(data.runs.length);
    // The row that had the focus gets it again.
    const focused = document.activeElement?.getAttribute("href");
    replace(list, data.runs.length === 0 ? emptyState() : data.runs.map(runRow));
    if (focused)
      list.querySelector<HTMLElement>(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    replace(refused, data.refusals.length === 0 ? [] : refusals(data.refusals));
  };
  draw();
  onChange(undefined, signal, async () => {
    data = await read<RunsAnswer>("/runs", { signal });
    draw();
  });
  everySecond(signal, () => tickTimes(root));
}

/** Updates the texts of times that are shown relative to now. */
export function tickTimes(root: HTMLElement): void {
  for (const element of root.querySelectorAll<HTMLElement>("[data-since]")) {
    element.textContent = duration(Date.now() - Number(element.dataset.since));
  }
  for (const element of root.querySelectorAll<HTMLElement>("[data-ago]")) {
    element.textContent = ago(Number(element.dataset.ago));
  }
}

function runRow(run: ListedRun): HTMLElement {
  const { runId, curve, totalSteps } = run;
  const last = curve.at(-1);
  const hasSuccess = curve.some(({ success }) => success !== null);
  const values = curve.map((point) => (hasSuccess ? point.success : point.reward));
  const isMeasured = last !== undefined;
  const progress = progressOf(run);
  return h(
    "a",
    { class: "card run-row", href: link("runs", runId) },
    h(
      "div",
      { class: "run-what" },
      h("div", { class: "run-name" }, h("strong", {}, runId), phaseBadge(run.phase)),
      h("div", { class: "small soft run-wait" }, waitText(run, progress)),
      run.endedAtMs === null &&
        (troublesOf(run) ?? []).map(({ outcome, text, reason }) =>
          h(
            "div",
            { class: "small outcome run-wait", data: { tone: outcomeTone(outcome) }, title: reason || false },
            text,
          ),
        ),
    ),
    h(
      "div",
      { class: "run-curve" },
      sparkline(values, { label: hasSuccess ? "success per step" : "reward per step" }),
    ),
    h(
      "div",
      { class: "run-figure" },
      h(
        "strong",
        { class: "num" },
        isMeasured ? (hasSuccess ? percent(last.success) : number(last.reward, 3)) : "–",
      ),
      h("span", { class: "small faint" }, hasSuccess || !isMeasured ? "success" : "reward"),
    ),
    h(
      "div",
      { class: "run-steps" },
      h(
        "span",
        { class: "small num soft" },
        totalSteps > 0 ? `${count(last?.step ?? 0)} of ${count(totalSteps)} steps` : "no step yet",
      ),
      progressBar(totalSteps > 0 ? (last?.step ?? 0) / totalSteps : 0, "steps done"),
    ),
  );
}

/** The text of a row below the run's name. */
function waitText(run: ListedRun, progress: ReturnType<typeof progressOf>): Child {
  if (run.endedAtMs !== null) {
    const took = run.acceptedAtMs === null ? null : duration(run.endedAtMs - run.acceptedAtMs);
    return [
      h("span", { data: { ago: run.endedAtMs } }),
      took && `, after ${took}`,
      run.endReason !== "" && `: ${run.endReason}`,
    ];
  }
  if (run.waitingFor !== "") {
    return [
      "Waiting for ",
      run.waitingFor,
      run.waitingSinceMs !== null && [", for ", sinceText(run.waitingSinceMs)],
      run.waitingOwner !== "" && `; ${ownerText(run.waitingOwner)}`,
    ];
  }
  if (progress !== null) return progress.text;
  return run.acceptedAtMs === null ? "" : ["Started ", h("span", { data: { ago: run.acceptedAtMs } })];
}

/** @returns who must act for the run to continue, in the words of `hone status`: "waiting for the judge". */
export function ownerText(owner: string): string {
  if (owner === "you" || owner.includes("-")) return `waiting for ${owner}`;
  return owner === "dataset" ? "waiting for the dataset service" : `waiting for the ${owner}`;
}

function emptyState(): HTMLElement {
  return h(
    "div",
    { class: "card empty" },
    h("h2", {}, "No runs yet"),
    h(
      "p",
      {},
      "A run appears here as soon as it is started. The first example learns to cross a frozen lake:",
    ),
    h("pre", {}, "hone run examples/01-frozen-lake/run.yaml"),
  );
}

function refusals(list: readonly Refusal[]): Child {
  return [
    h("div", { class: "section-head" }, h("h2", {}, "Refused requests")),
    h(
      "ul",
      { class: "card refusals" },
      list.map(({ requestSequence, timeMs, problems }) =>
        h(
          "li",
          {},
          h(
            "span",
            { class: "small faint" },
            `Request ${requestSequence}, `,
            h("span", { data: { ago: timeMs } }),
          ),
          problems.map(({ key, message }) => h("p", {}, key !== "" && h("code", {}, key), " ", message)),
        ),
      ),
    ),
  ];
}
