/**
 * A line chart in SVG that grows with its data.
 *
 * The pointer, or the arrow keys while the chart has the focus, moves a cross-hair from step to step, and a card shows the
 * values there. Lines of many points are drawn twice: the values themselves faintly, their moving average strongly.
 */

import { append, h, replace, s, setVars } from "../dom.ts";
import { domainOf, linear, nearestIndex, niceTicks, pathThrough, smooth, thin } from "./scale.js";

/** From this number of points on, the moving average is drawn. */
const SMOOTH_FROM = 24;

/**
 * @param options `label` (read out by screen readers), `height`, `isSmall`, `format` (value to text),
 *   `xLabel`, `isFromZero` (the axis begins at 0 if no value is negative).
 * @returns the element, and `update(series)`; a series is `{ name, curve (1-4), points: [{x, y}], kind: "line" | "dots" }`,
 *   its points in ascending x.
 */
export function lineChart(options) {
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
  let series = [];
  let steps = [];
  let selected;
  let geometry;

  const draw = () => {
    const width = element.clientWidth;
    if (width === 0) return;
    const drawn = series.filter(({ points }) => points.length > 0);
    const plot = {
      left: margin.left,
      right: width - margin.right,
      top: margin.top,
      bottom: height - margin.bottom,
    };
    const xs = drawn.flatMap(({ points }) => [points[0].x, points.at(-1).x]);
    const ys = drawn.flatMap(({ points }) => points.map(({ y }) => y));
    const xDomain = xs.length === 0 ? [0, 1] : [Math.min(...xs), Math.max(...xs, Math.min(...xs) + 1)];
    const yDomain = domainOf(ys, options);
    const x = linear(xDomain, [plot.left, plot.right]);
    const y = linear(yDomain, [plot.bottom, plot.top]);
    geometry = { x, y, plot };
    svg.setAttribute("width", width);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    replace(svg, axes(xDomain, yDomain, geometry, { isSmall, format, xLabel }));
    for (const one of drawn) append(svg, marks(one, geometry));
    append(svg, crosshair());
  };

  const crosshair = () => {
    card.hidden = selected === undefined;
    if (selected === undefined || geometry === undefined) return [];
    const step = steps[selected];
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

  const select = (index) => {
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
    const first = steps[0];
    const last = Math.max(steps.at(-1), first + 1);
    const at = event.clientX - element.getBoundingClientRect().left;
    select(nearestIndex(steps, linear([plot.left, plot.right], [first, last])(at)));
  });
  element.addEventListener("pointerleave", () => select(undefined));
  element.addEventListener("blur", () => select(undefined));
  element.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 };
    if (event.key in moves) select((selected ?? steps.length) + moves[event.key]);
    else if (event.key === "Home") select(0);
    else if (event.key === "End") select(steps.length - 1);
    else if (event.key === "Escape") select(undefined);
    else return;
    event.preventDefault();
  });
  new ResizeObserver(draw).observe(element);

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

function axes(xDomain, yDomain, { x, y, plot }, { isSmall, format, xLabel }) {
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

function marks({ curve, points, kind }, { x, y, plot }) {
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

function summary(series, format, xLabel) {
  const parts = series
    .filter(({ points }) => points.length > 0)
    .map(
      ({ name, points }) =>
        `${name}: ${format(points[0].y)} at ${xLabel} ${points[0].x}, ${format(points.at(-1).y)} at ${xLabel} ${points.at(-1).x}`,
    );
  return parts.length === 0
    ? "No values yet."
    : `${parts.join("; ")}. Arrow keys move through the ${xLabel}s.`;
}

/** The small curve of a list row, without axes; its range is 0 to 1 where all values lie in it. */
export function sparkline(values, { width = 160, height = 36, label }) {
  const points = values.flatMap((y, x) => (y === null ? [] : [{ x, y }]));
  if (points.length === 0) return h("span", { class: "spark-empty" });
  const isShare = points.every(({ y }) => y >= 0 && y <= 1);
  const x = linear([0, Math.max(1, values.length - 1)], [2, width - 4]);
  const y = linear(isShare ? [0, 1] : domainOf(points.map((point) => point.y)), [height - 3, 4]);
  const line = pathThrough(points.length < SMOOTH_FROM ? points : smooth(points, 3), x, y);
  const last = points.at(-1);
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
      d: `${line}L${x(last.x).toFixed(1)} ${height - 2}L${x(points[0].x).toFixed(1)} ${height - 2}Z`,
    }),
    s("path", { class: "line", d: line }),
  );
}
