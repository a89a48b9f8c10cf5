/**
 * What the steps of a run cost: what became of the tokens that its rollouts sampled, where the time of each step went, and what useful
 * gradient costs in time and, where the operator gives the price of an hour, in money.
 */

import { read, runPath } from "../../api.ts";
import type { CostAnswer, Series } from "../../api-types.ts";
import { type Child, h, replace } from "../../dom.ts";
import { count, duration, milliseconds, percent } from "../../format.ts";
import { tableHead, tile } from "../parts.ts";

/** The newest steps, one row each. */
const MAX_ROWS = 12;
const HOUR_MS = 3_600_000;
/** Parts of a step's time: what it waits for, its colour, and how it is made of the step's figures. */
const PARTS: readonly TimePart[] = [
  { name: "play", curve: "wait", of: (at) => at("time/rollout_ms") },
  { name: "score", curve: "3", of: (at) => at("time/score_ms") },
  { name: "train", curve: "1", of: (at) => Math.max(0, at("time/train_ms") - at("time/score_ms")) },
  { name: "commit", curve: "2", of: (at) => at("time/commit_ms") },
  { name: "publish", curve: "4", of: (at) => at("time/publish_ms") },
];
/** What became of sampled tokens. */
const FATES = [
  { name: "useful", text: "gave a gradient", curve: "1" },
  { name: "flat", text: "in groups without a gradient", curve: "2" },
  { name: "stale", text: "dropped as too old", curve: "3" },
  { name: "leftOut", text: "left out", curve: "wait" },
] as const;

interface TimePart {
  readonly name: string;
  readonly curve: string;
  readonly of: (at: (metric: string) => number) => number;
}

type Fate = (typeof FATES)[number]["name"];
type Tokens = Readonly<Record<Fate | "generated", number>>;

export interface CostSection {
  readonly element: HTMLElement;
  refresh(series: Series): Promise<void>;
}

export function costSection(runId: string, signal: AbortSignal): CostSection {
  const element = h("section", { class: "section", id: "cost", hidden: true });
  return {
    element,
    async refresh(series) {
      if (series.steps.length === 0) return;
      const answer = await read<CostAnswer>(runPath(runId, "cost"), { signal });
      element.hidden = false;
      replace(
        element,
        h(
          "div",
          { class: "section-head" },
          h("h2", {}, "Cost"),
          h("span", { class: "small faint" }, "of the newest steps, up to 40"),
        ),
        tilesOf(answer, series),
        stepTable(answer, series),
      );
    },
  };
}

function tilesOf({ steps, price }: CostAnswer, series: Series): Child {
  const sum = sumOf(steps.map(tokensOf));
  const kept = new Set(steps.map(({ step }) => step));
  const ms = series.steps.reduce(
    (all, step, row) => (kept.has(step) ? all + at(series, row, "time/step_ms") : all),
    0,
  );
  const trained = series.steps.reduce(
    (all, step, row) => (kept.has(step) ? all + at(series, row, "tokens/trained") : all),
    0,
  );
  const share = (fate: Fate) => `${percent(sum[fate] / Math.max(1, sum.generated), 1)} of those sampled`;
  const perMillion = sum.useful === 0 ? null : 1_000_000 / sum.useful;
  return h(
    "dl",
    { class: "card tiles" },
    tile("Tokens sampled", count(sum.generated), `${count(trained)} in the loss`),
    tile("Gave a gradient", count(sum.useful), share("useful")),
    tile("In flat groups", count(sum.flat), share("flat")),
    tile("Too old, left out", count(sum.stale + sum.leftOut), `${count(sum.stale)} too old`),
    tile("Time", duration(ms), perMillion === null ? "" : `${duration(ms * perMillion)} a million useful`),
    price !== null &&
      tile(
        "Cost",
        money((ms / HOUR_MS) * price.perHour, price),
        perMillion === null
          ? ""
          : `${money((ms / HOUR_MS) * price.perHour * perMillion, price)} a million useful`,
      ),
  );
}

function stepTable({ steps, price }: CostAnswer, series: Series): Child {
  const known = new Map(steps.map((each) => [each.step, tokensOf(each)]));
  const rows = series.steps
    .map((step, row) => ({ step, row }))
    .slice(-MAX_ROWS)
    .reverse();
  const longest = Math.max(1, ...rows.map(({ row }) => at(series, row, "time/step_ms")));
  const most = Math.max(1, ...rows.map(({ step }) => known.get(step)?.generated ?? 0));
  const columns: (readonly [Child, boolean?])[] = [
    ["Step", true],
    ["What it waited for"],
    ["Time", true],
    ["What became of its tokens"],
    ["Sampled", true],
    ...(price === null ? [] : [["Cost", true] as const]),
  ];
  return h(
    "div",
    { class: "card cost-card" },
    h(
      "div",
      { class: "legend cost-legend" },
      PARTS.map(({ name, curve }) => legendOf(name, curve)),
    ),
    h(
      "div",
      { class: "legend cost-legend" },
      FATES.map(({ text, curve }) => legendOf(text, curve)),
    ),
    h(
      "div",
      { class: "table-wrap" },
      h(
        "table",
        { class: "cost-table" },
        tableHead(columns),
        h(
          "tbody",
          {},
          rows.map(({ step, row }) => {
            const ms = at(series, row, "time/step_ms");
            const parts = PARTS.map(({ name, curve, of }) => ({
              name,
              curve,
              value: of((metric) => at(series, row, metric)),
            }));
            const tokens = known.get(step);
            const fates = FATES.map(({ name, text, curve }) => ({
              name: text,
              curve,
              value: tokens?.[name] ?? 0,
            }));
            return h(
              "tr",
              {},
              h("td", { class: "right" }, step),
              h("td", {}, stack(parts, longest, milliseconds)),
              h("td", { class: "right" }, milliseconds(ms)),
              h(
                "td",
                {},
                tokens === undefined ? h("span", { class: "faint" }, "not kept") : stack(fates, most, count),
              ),
              h("td", { class: "right" }, count(tokens?.generated)),
              price !== null && h("td", { class: "right" }, money((ms / HOUR_MS) * price.perHour, price)),
            );
          }),
        ),
      ),
    ),
  );
}

function legendOf(text: string, curve: string): HTMLElement {
  return h("span", { class: `curve-${curve}` }, h("span", { class: "swatch lane-swatch" }), text);
}

/** A bar of parts; its text is read out and shown under the pointer. */
function stack(
  parts: ReadonlyArray<{ readonly name: string; readonly curve: string; readonly value: number }>,
  whole: number,
  format: (value: number) => string,
): HTMLElement {
  const text = parts
    .filter(({ value }) => value > 0)
    .map(({ name, value }) => `${name} ${format(value)}`)
    .join(", ");
  return h(
    "span",
    { class: "stack", role: "img", "aria-label": text, title: text },
    parts.map(({ curve, value }) =>
      value > 0 ? h("span", { class: `curve-${curve}`, vars: { size: value / whole } }) : null,
    ),
  );
}

function tokensOf({ generated, stale, leftOut, flat }: CostAnswer["steps"][number]): Tokens {
  return { generated, stale, leftOut, flat, useful: Math.max(0, generated - stale - leftOut - flat) };
}

function sumOf(all: readonly Tokens[]): Tokens {
  const sum = { generated: 0, stale: 0, leftOut: 0, flat: 0, useful: 0 };
  for (const each of all) for (const name of Object.keys(sum) as (keyof Tokens)[]) sum[name] += each[name];
  return sum;
}

function at({ metrics }: Series, row: number, metric: string): number {
  return metrics[metric]?.[row] ?? 0;
}

function money(amount: number, { currency }: NonNullable<CostAnswer["price"]>): string {
  // Two digits of an amount below a hundredth, such as 0.00033.
  if (amount > 0 && amount < 0.01)
    return `${amount.toFixed(Math.min(12, 1 - Math.floor(Math.log10(amount))))} ${currency}`;
  return amount.toLocaleString(undefined, { style: "currency", currency });
}
