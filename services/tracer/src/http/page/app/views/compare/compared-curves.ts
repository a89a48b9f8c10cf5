/** The curves of several runs over each other: one large chart of a chosen metric, and small ones of all that more than one run has. */

import type { Evaluation, Series } from "../../api-types.ts";
import { type Line, lineChart } from "../../charts/line-chart.ts";
import { h, replace } from "../../dom.ts";
import { number } from "../../format.ts";
import { formatOf, groupsOf, labelOf, pointsOf } from "../run/run-charts.ts";

export interface ComparedRun {
  readonly runId: string;
  readonly config: unknown;
  readonly evaluations: readonly Evaluation[];
  readonly series: Series;
}

/** Chosen where the runs have it; the name of the curve of evaluations is no metric of a step. */
const HELD_OUT = "held out";
const FIRST = ["success", "reward/mean"];

export function comparedCurves(runs: readonly ComparedRun[]): HTMLElement {
  const names = [...new Set(runs.flatMap(({ series }) => Object.keys(series.metrics)))];
  const shared = names.filter(
    (name) => runs.filter(({ series }) => hasValues(series, name)).length > Math.min(1, runs.length - 1),
  );
  const groups = groupsOf(shared.filter((name) => !/^staleness\/\d+$/.test(name)));
  const chart = lineChart({
    label: "The chosen metric of every run",
    height: 320,
    format: (value) => number(value, 3),
  });
  const chooser = h(
    "select",
    { "aria-label": "Metric" },
    FIRST.filter((name) => shared.includes(name)).map((name) => h("option", { value: name }, labelOf(name))),
    runs.some(({ evaluations }) => evaluations.length > 0) &&
      h("option", { value: HELD_OUT }, "held out, sampled"),
    groups.map(([title, members]) =>
      h(
        "optgroup",
        { label: title },
        members
          .filter((name) => !FIRST.includes(name))
          .map((name) => h("option", { value: name }, labelOf(name))),
      ),
    ),
  );
  const legend = h("div", { class: "legend" });
  const draw = () => {
    const lines = runs.map((run, index) => lineOf(run, index, chooser.value));
    replace(
      legend,
      lines.map(({ name, curve, kind }) =>
        h("span", { class: `curve-${curve}` }, h("span", { class: `swatch swatch-${kind}` }), name),
      ),
    );
    chart.update(lines);
  };
  chooser.addEventListener("change", draw);
  draw();
  return h(
    "div",
    {},
    h(
      "section",
      { class: "section card main-chart", id: "compared-curve" },
      h("div", { class: "section-head" }, h("h2", {}, "Curves"), chooser, legend),
      chart.element,
    ),
    h(
      "section",
      { class: "section" },
      groups.map(([title, members]) =>
        h(
          "div",
          { class: "multiples-group" },
          h("h3", {}, title),
          h(
            "div",
            { class: "multiples" },
            members.map((name) => smallChart(name, runs)),
          ),
        ),
      ),
    ),
  );
}

function smallChart(name: string, runs: readonly ComparedRun[]): HTMLElement {
  const label = labelOf(name);
  const chart = lineChart({
    label,
    height: 84,
    isSmall: true,
    format: formatOf(name, name.endsWith("_ms") ? "ms" : undefined),
  });
  chart.update(runs.map((run, index) => lineOf(run, index, name)));
  return h(
    "div",
    { class: "card multiple" },
    h("div", { class: "multiple-head" }, h("span", { class: "multiple-name" }, label)),
    chart.element,
  );
}

function lineOf({ runId, series, evaluations }: ComparedRun, index: number, metric: string): Line {
  const curve = index + 1;
  if (metric !== HELD_OUT)
    return { name: runId, curve, kind: "line", points: pointsOf(series.steps, series.metrics[metric]) };
  const points = evaluations
    .filter(({ mode }) => mode === "sampled")
    .flatMap(({ version, metrics }) => {
      const y = metrics.success ?? metrics["reward/mean"] ?? null;
      return y === null ? [] : [{ x: version, y }];
    });
  return { name: runId, curve, kind: "dots", points };
}

function hasValues({ metrics }: Series, name: string): boolean {
  return metrics[name]?.some((value) => value !== null) ?? false;
}
