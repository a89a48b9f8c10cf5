/** The charts of a run: a large one of success and reward, and a small one for every other metric. */

import type { Evaluation, Series } from "../../api-types.ts";
import { type Line, type LineChart, lineChart, type Point } from "../../charts/line-chart.ts";
import { h, replace } from "../../dom.ts";
import { type Maybe, milliseconds, number, percent } from "../../format.ts";

/** Groups of metrics, in the order in which they are shown; metrics in no group come last. */
const GROUPS: readonly (readonly [title: string, names: readonly string[]])[] = [
  [
    "Learning",
    [
      "loss",
      "entropy",
      "grad_norm",
      "grad_norm/max",
      "clip_fraction",
      "ratio/max",
      "kl/mean",
      "mismatch/max",
      "mismatch/mean",
      "learning_rate",
      "updates",
    ],
  ],
  [
    "Rollouts",
    [
      "reward/std",
      "reward/min",
      "reward/max",
      "turns/mean",
      "actions/invalid",
      "groups/used",
      "groups/flat",
      "groups/empty",
      "groups/played",
      "groups/filtered",
      "groups/surplus",
      "sampling/batches",
      "groups/ahead",
      "groups/ready",
      "groups/open",
      "groups/too_old",
      "rollouts/waiting",
      "deadline/ms",
      "deadline/ended",
      "staleness/mean",
      "staleness/max",
      "episodes",
      "tokens",
      "tokens/trained",
      "tokens/sampled_mean",
    ],
  ],
  [
    "Time",
    [
      "episodes_per_second",
      "tokens_per_second",
      "time/step_ms",
      "time/rollout_ms",
      "idle/trainer",
      "idle/engines",
      "time/train_ms",
      "time/score_ms",
      "time/commit_ms",
      "time/publish_ms",
    ],
  ],
];
/** Metrics that the large chart shows. */
const MAIN = new Set(["success", "reward/mean"]);
/** Prefix of the metrics that count outcomes; an outcome that never occurred is not shown. */
const OUTCOME = "outcome/";
/** Metrics that are shares, which are shown as percentages. */
const SHARES = new Set(["clip_fraction", "actions/invalid", "idle/trainer", "idle/engines"]);
/** Numbers of tokens by their age, which the view of a step shows as a histogram. */
const AGE = /^staleness\/\d+$/;

/** Unit and description of each known metric. */
export type MetricInfo = Readonly<Record<string, { readonly unit: string; readonly description: string }>>;

export interface RunCharts {
  readonly main: HTMLElement;
  readonly multiples: HTMLElement;
  update(series: Series, evaluations: readonly Evaluation[]): void;
}

export function runCharts(info: MetricInfo): RunCharts {
  const legend = h("div", { class: "legend" });
  const chart = lineChart({
    label: "Success and reward per step",
    height: 300,
    isFromZero: true,
    format: (value) => number(value, 3),
  });
  const none = h("div", { class: "chart-none" }, "The curve begins with the first step.");
  const main = h(
    "section",
    { class: "section card main-chart", id: "learning-curve" },
    h("div", { class: "section-head" }, h("h2", {}, "Learning curve"), legend),
    none,
    chart.element,
  );
  const multiples = h("section", { class: "section" });
  const small = new Map<string, Multiple>();

  return {
    main,
    multiples,
    update(series, evaluations) {
      const lines = mainSeries(series, evaluations);
      const isEmpty = lines.every(({ points }) => points.length === 0);
      none.hidden = !isEmpty;
      chart.element.hidden = isEmpty;
      replace(
        legend,
        lines
          .filter(({ points }) => points.length > 0)
          .map(({ name, curve, kind }) =>
            h("span", { class: `curve-${curve}` }, h("span", { class: `swatch swatch-${kind}` }), name),
          ),
      );
      chart.update(lines);
      drawMultiples(multiples, small, series, info);
    },
  };
}

function mainSeries({ steps, metrics }: Series, evaluations: readonly Evaluation[]): readonly Line[] {
  const success = pointsOf(steps, metrics.success);
  const reward = pointsOf(steps, metrics["reward/mean"]);
  // Where reward and success are equal, one line is drawn for both.
  const isSame =
    success.length === reward.length &&
    success.every(({ y }, i) => Math.abs(y - (reward[i]?.y ?? Number.NaN)) < 1e-9);
  const evaluated = (mode: string): Point[] =>
    evaluations
      .filter((evaluation) => evaluation.mode === mode)
      .flatMap(({ version, metrics: figures }) => {
        const y = figures.success ?? figures["reward/mean"] ?? null;
        return y === null ? [] : [{ x: version, y }];
      });
  return [
    { name: "success in training", curve: 1, kind: "line", points: success },
    { name: "reward", curve: 2, kind: "line", points: isSame ? [] : reward },
    { name: "held out, sampled", curve: 3, kind: "dots", points: evaluated("sampled") },
    { name: "held out, greedy", curve: 4, kind: "dots", points: evaluated("greedy") },
  ];
}

interface Multiple {
  readonly element: HTMLElement;
  update(points: readonly Point[]): void;
}

function drawMultiples(
  parent: HTMLElement,
  small: Map<string, Multiple>,
  series: Series,
  info: MetricInfo,
): void {
  const isShown = (name: string) =>
    series.metrics[name]?.some((value) => (name.startsWith(OUTCOME) ? (value ?? 0) > 0 : value !== null));
  const names = Object.keys(series.metrics).filter(
    (name) => !MAIN.has(name) && !AGE.test(name) && isShown(name),
  );
  const grouped = groupsOf(names);
  // Elements are made again only when a step brings a new metric.
  const key = grouped.map(([title, members]) => `${title}:${members.join()}`).join("|");
  if (parent.dataset.key !== key) {
    parent.dataset.key = key;
    replace(
      parent,
      grouped.map(([title, members]) =>
        h(
          "div",
          { class: "multiples-group" },
          h("h3", {}, title),
          h(
            "div",
            { class: "multiples" },
            members.map((name) => multipleOf(name, small, info).element),
          ),
        ),
      ),
    );
  }
  for (const name of names) small.get(name)?.update(pointsOf(series.steps, series.metrics[name]));
}

/** The names in their groups. */
export function groupsOf(
  names: readonly string[],
): ReadonlyArray<readonly [title: string, names: readonly string[]]> {
  const rest = new Set(names);
  const groups = GROUPS.map(
    ([title, members]) => [title, members.filter((name) => rest.delete(name))] as const,
  );
  const outcomes = [...rest].filter((name) => name.startsWith(OUTCOME));
  const others = [...rest].filter((name) => !name.startsWith(OUTCOME));
  return [...groups, ["Outcomes", outcomes] as const, ["Agent and other", others] as const].filter(
    ([, members]) => members.length > 0,
  );
}

function multipleOf(name: string, small: Map<string, Multiple>, info: MetricInfo): Multiple {
  const known = small.get(name);
  if (known !== undefined) return known;
  const format = formatOf(name, info[name]?.unit);
  const label = labelOf(name);
  const chart: LineChart = lineChart({ label, height: 84, isSmall: true, format });
  const last = h("span", { class: "multiple-last" });
  const element = h(
    "div",
    { class: "card multiple", title: info[name]?.description ?? name },
    h("div", { class: "multiple-head" }, h("span", { class: "multiple-name" }, label), last),
    chart.element,
  );
  const entry = {
    element,
    update(points: readonly Point[]) {
      last.textContent = format(points.at(-1)?.y ?? null);
      chart.update([{ name: label, curve: 1, kind: "line", points }]);
    },
  };
  small.set(name, entry);
  return entry;
}

/** A metric's name as words. */
export function labelOf(name: string): string {
  return name.replace(/_ms$/, "").replaceAll(/[_/]/g, " ");
}

/** How the values of a metric are written. */
export function formatOf(name: string, unit: string | undefined): (value: Maybe) => string {
  if (unit === "ms") return milliseconds;
  if (SHARES.has(name)) return (value: Maybe) => percent(value, 1);
  return (value: Maybe) => number(value, 3);
}

/** The points of a metric. */
export function pointsOf(steps: readonly number[], values: readonly Maybe[] = []): Point[] {
  return steps.flatMap((x, i) => {
    const y = values[i];
    return y === null || y === undefined ? [] : [{ x, y }];
  });
}
