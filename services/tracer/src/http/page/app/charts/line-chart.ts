/**
 * A line chart in SVG that grows with its data.
 *
 * The pointer, or the arrow keys while the chart has the focus, moves a cross-hair from step to step, and a card shows the
 * values there. Lines of many points are drawn twice: the values themselves faintly, their moving average strongly.
 */

import { append, type Child, h, replace, s, setVars } from "../dom.ts";
import type { Maybe } from "../format.ts";
import {
  domainOf,
  linear,
  nearestIndex,
  niceTicks,
  type Point,
  pathThrough,
  type Range,
  type Scale,
  smooth,
  thin,
} from "./scale.ts";

export type { Point } from "./scale.ts";

/** From this number of points on, the moving average is drawn. */
const SMOOTH_FROM = 24;
/** A chart is drawn when it is as close to the window as this. */
const NEAR_PIXELS = 400;

/** One line; its points are in ascending order. */
export interface Line {
  readonly name: string;
  /** Number of its colour, 1 to 8. */
  readonly curve: number;
  readonly kind: "line" | "dots";
  readonly points: readonly Point[];
}

export interface LineChartOptions {
  /** Read out by screen readers. */
  readonly label: string;
  readonly height: number;
  readonly isSmall?: boolean;
  readonly format: (value: Maybe) => string;
  /** @default "step" */
  readonly xLabel?: string;
  /** The axis begins at 0 if no value is negative. */
  readonly isFromZero?: boolean;
}

export interface LineChart {
  readonly element: HTMLElement;
  update(lines: readonly Line[]): void;
}

interface Plot {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

interface Geometry {
  readonly x: Scale;
  readonly y: Scale;
  readonly plot: Plot;
}

/** A chart that is drawn when it comes near the window, and again when its lines or its width change. */
export function lineChart(options: LineChartOptions): LineChart {
  const { label, height, isSmall = false, format, xLabel = "step" } = options;
  const margin = isSmall
    ? { top: 6, right: 6, bottom: 18, left: 6 }
    : { top: 12, right: 16, bottom: 30, left: 48 };
  const svg = s("svg", { class: "chart-svg", height, "aria-hidden": "true" });
  const card = h("div", { class: "chart-card", hidden: true });
  const element = h(
    "div",
    { class: isSmall ? "chart chart-small" : "chart", tabindex: 0, role: "img", "aria-label": label },
    svg,
    card,
  );
  let series: readonly Line[] = [];
  let steps: readonly number[] = [];
  let selected: number | undefined;
  let geometry: Geometry | undefined;
  let isNear = false;

  const draw = () => {
    const width = isNear ? element.clientWidth : 0;
    if (width === 0) return;
    const drawn = series.filter(({ points }) => points.length > 0);
    const plot = {
      left: margin.left,
      right: width - margin.right,
      top: margin.top,
      bottom: height - margin.bottom,
    };
    const xs = drawn.flatMap(({ points }) => [points[0]?.x ?? 0, points.at(-1)?.x ?? 0]);
    const ys = drawn.flatMap(({ points }) => points.map(({ y }) => y));
    const xDomain: Range = xs.length === 0 ? [0, 1] : [Math.min(...xs), Math.max(...xs, Math.min(...xs) + 1)];
    const yDomain = domainOf(ys, options);
    const x = linear(xDomain, [plot.left, plot.right]);
    const y = linear(yDomain, [plot.bottom, plot.top]);
    geometry = { x, y, plot };
    svg.setAttribute("width", String(width));
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    replace(svg, axes(xDomain, yDomain, geometry, { isSmall, format, xLabel }));
    for (const one of drawn) append(svg, marks(one, geometry));
    append(svg, crosshair());
  };

  const crosshair = (): Child => {
    card.hidden = selected === undefined;
    const step = steps[selected ?? -1];
    if (step === undefined || geometry === undefined) return [];
    const { x, y, plot } = geometry;
    const here = series.flatMap(({ name, curve, points, kind }) => {
      const point =
        points[
          nearestIndex(
            points.map((each) => each.x),
            step,
          )
        ];
      return point !== undefined && point.x === step ? [{ name, curve, kind, ...point }] : [];
    });
    replace(
      card,
      h("div", { class: "chart-card-step" }, `${xLabel} ${step}`),
      here.map(({ name, curve, kind, y: value }) =>
        h(
          "div",
          { class: `chart-card-row curve-${curve}` },
          h("span", { class: `swatch swatch-${kind}` }),
          h("span", {}, name),
          h("strong", { class: "num" }, format(value)),
        ),
      ),
    );
    const at = x(step);
    setVars(card, { x: `${at}px`, shift: at > (plot.left + plot.right) / 2 ? "calc(-100% - 12px)" : "12px" });
    return [
      s("line", { class: "crosshair", x1: at, x2: at, y1: plot.top, y2: plot.bottom }),
      here.map((point) =>
        s("circle", { class: `crosshair-dot curve-${point.curve}`, cx: at, cy: y(point.y), r: 4 }),
      ),
    ];
  };

  const select = (index: number | undefined) => {
    const bounded =
      index === undefined || steps.length === 0 ? undefined : Math.max(0, Math.min(steps.length - 1, index));
    if (bounded === selected) return;
    selected = bounded;
    for (const old of svg.querySelectorAll(".crosshair, .crosshair-dot")) old.remove();
    append(svg, crosshair());
  };

  element.addEventListener("pointermove", (event) => {
    if (geometry === undefined || steps.length === 0) return;
    const { plot } = geometry;
    const first = steps[0] ?? 0;
    const last = Math.max(steps.at(-1) ?? 0, first + 1);
    const at = event.clientX - element.getBoundingClientRect().left;
    select(nearestIndex(steps, linear([plot.left, plot.right], [first, last])(at)));
  });
  element.addEventListener("pointerleave", () => select(undefined));
  element.addEventListener("blur", () => select(undefined));
  element.addEventListener("keydown", (event) => {
    const moves: Readonly<Record<string, number>> = {
      ArrowLeft: -1,
      ArrowRight: 1,
      PageUp: -10,
      PageDown: 10,
    };
    const move = moves[event.key];
    if (move !== undefined) select((selected ?? steps.length) + move);
    else if (event.key === "Home") select(0);
    else if (event.key === "End") select(steps.length - 1);
    else if (event.key === "Escape") select(undefined);
    else return;
    event.preventDefault();
  });
  new ResizeObserver(draw).observe(element);
  const watcher = new IntersectionObserver(
    (entries) => {
      if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
      isNear = true;
      watcher.disconnect();
      draw();
    },
    { rootMargin: `${NEAR_PIXELS}px` },
  );
  watcher.observe(element);

  return {
    element,
    update(next) {
      const stepBefore = selected === undefined ? undefined : steps[selected];
      series = next;
      steps = [...new Set(next.flatMap(({ points }) => points.map(({ x }) => x)))].sort((a, b) => a - b);
      selected = stepBefore === undefined ? undefined : nearestIndex(steps, stepBefore);
      draw();
      element.setAttribute("aria-label", `${label}. ${summary(next, format, xLabel)}`);
    },
  };
}

function axes(
  xDomain: Range,
  yDomain: Range,
  { x, y, plot }: Geometry,
  { isSmall, format, xLabel }: Required<Pick<LineChartOptions, "isSmall" | "format" | "xLabel">>,
): Child {
  if (isSmall) {
    return [
      s("line", { class: "axis", x1: plot.left, x2: plot.right, y1: plot.bottom, y2: plot.bottom }),
      s("text", { class: "tick", x: plot.left, y: plot.bottom + 13 }, String(xDomain[0])),
      s("text", { class: "tick tick-end", x: plot.right, y: plot.bottom + 13 }, String(xDomain[1])),
    ];
  }
  const xTicks = niceTicks(xDomain[0], xDomain[1], Math.max(2, (plot.right - plot.left) / 90)).filter(
    Number.isInteger,
  );
  return [
    niceTicks(yDomain[0], yDomain[1], 5).map((tick) => [
      s("line", { class: "grid", x1: plot.left, x2: plot.right, y1: y(tick), y2: y(tick) }),
      s("text", { class: "tick tick-end", x: plot.left - 8, y: y(tick) + 4 }, format(tick)),
    ]),
    s("line", { class: "axis", x1: plot.left, x2: plot.right, y1: plot.bottom, y2: plot.bottom }),
    xTicks.map((tick) =>
      s("text", { class: "tick tick-middle", x: x(tick), y: plot.bottom + 18 }, String(tick)),
    ),
    s("text", { class: "tick tick-end axis-label", x: plot.right, y: plot.bottom + 29 }, xLabel),
  ];
}

function marks({ curve, points, kind }: Line, { x, y, plot }: Geometry): Child {
  const color = `curve-${curve}`;
  if (kind === "dots") {
    return [
      s("path", { class: `line line-dotted ${color}`, d: pathThrough(points, x, y) }),
      points.map((point) => s("circle", { class: `dot ${color}`, cx: x(point.x), cy: y(point.y), r: 4.5 })),
    ];
  }
  const columns = Math.max(2, Math.floor(plot.right - plot.left));
  if (points.length < SMOOTH_FROM) return s("path", { class: `line ${color}`, d: pathThrough(points, x, y) });
  const thinned = thin(points, columns);
  const averaged = smooth(thinned, Math.max(2, thinned.length / 25));
  return [
    s("path", { class: `line line-raw ${color}`, d: pathThrough(thinned, x, y) }),
    s("path", { class: `line ${color}`, d: pathThrough(averaged, x, y) }),
  ];
}

function summary(series: readonly Line[], format: (value: Maybe) => string, xLabel: string): string {
  const parts = series
    .filter(({ points }) => points.length > 0)
    .map(
      ({ name, points: [first, ...rest] }) =>
        `${name}: ${format(first?.y)} at ${xLabel} ${first?.x}, ${format((rest.at(-1) ?? first)?.y)} at ${xLabel} ${(rest.at(-1) ?? first)?.x}`,
    );
  return parts.length === 0
    ? "No values yet."
    : `${parts.join("; ")}. Arrow keys move through the ${xLabel}s.`;
}

/** The small curve of a list row, without axes; its range is 0 to 1 where all values lie in it. */
export function sparkline(
  values: readonly (number | null)[],
  {
    width = 160,
    height = 36,
    label,
  }: { readonly width?: number; readonly height?: number; readonly label: string },
): HTMLElement | SVGElement {
  const points = values.flatMap((y, x) => (y === null ? [] : [{ x, y }]));
  if (points.length === 0) return h("span", { class: "spark-empty" });
  const isShare = points.every(({ y }) => y >= 0 && y <= 1);
  const x = linear([0, Math.max(1, values.length - 1)], [2, width - 4]);
  const y = linear(isShare ? [0, 1] : domainOf(points.map((point) => point.y)), [height - 3, 4]);
  const line = pathThrough(points.length < SMOOTH_FROM ? points : smooth(points, 3), x, y);
  const [first, last] = [points[0]?.x ?? 0, points.at(-1)?.x ?? 0];
  return s(
    "svg",
    {
      class: "spark curve-1",
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": label,
    },
    s("path", {
      class: "spark-area",
      d: `${line}L${x(last).toFixed(1)} ${height - 2}L${x(first).toFixed(1)} ${height - 2}Z`,
    }),
    s("path", { class: "line", d: line }),
  );
}
