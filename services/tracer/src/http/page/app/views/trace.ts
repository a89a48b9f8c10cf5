/** The view of a trace as a waterfall: when each span ran, below which other span, and its details. */

import { read, runPath } from "../api.ts";
import type { SpanView, TraceView } from "../api-types.ts";
import { type Child, h, link, replace } from "../dom.ts";
import { count, milliseconds } from "../format.ts";
import type { ViewContext } from "../view.ts";

/** Number of colours for services; a fifth service has the first's colour. */
const CURVES = 4;
/** Deeper spans are indented like those of this depth. */
const MAX_DEPTH = 12;

type TraceAnswer = TraceView & { readonly jaegerUrl: string };

export async function traceView({ root, params, signal, setPlace }: ViewContext): Promise<void> {
  const { run = "", slot = "", trace = "" } = params;
  const isOfRollout = run !== "";
  setPlace(
    "Trace",
    isOfRollout
      ? [[run, link("runs", run)], [slot, link("runs", run, "rollouts", slot)], ["Trace"]]
      : [["Trace"]],
  );
  const path = isOfRollout ? runPath(run, "rollouts", slot, "trace") : link("traces", trace);
  const view = await read<TraceAnswer>(path, { signal });
  const services = [...new Set(view.spans.map(({ service }) => service))];
  const curveOf = (service: string) => (services.indexOf(service) % CURVES) + 1;
  const panel = h("aside", { class: "card span-panel", "aria-live": "polite" });
  const rows = treeOf(view.spans);
  const list = h("ul", { class: "spans", "aria-label": "Spans" });
  const show = (span: SpanView) => replace(panel, spanDetails(span, curveOf(span.service)));
  replace(
    list,
    rows.map(({ span, depth }) =>
      spanRow(span, depth, view.durationMs, curveOf(span.service), (button) => {
        for (const other of list.querySelectorAll("[aria-pressed=true]"))
          other.setAttribute("aria-pressed", "false");
        button.setAttribute("aria-pressed", "true");
        show(span);
      }),
    ),
  );
  list.addEventListener("keydown", (event) => {
    const move = event.key === "ArrowUp" ? -1 : event.key === "ArrowDown" ? 1 : undefined;
    if (move === undefined) return;
    const buttons = [...list.querySelectorAll("button")];
    const next = buttons[buttons.findIndex((button) => button === document.activeElement) + move];
    next?.focus();
    next?.click();
    event.preventDefault();
  });
  replace(
    root,
    h(
      "div",
      { class: "run-head" },
      h("h1", {}, isOfRollout ? "Trace of " : "Trace", isOfRollout && h("span", { class: "mono" }, slot)),
      h(
        "span",
        { class: "soft small num" },
        `${count(view.spans.length)} spans, ${milliseconds(view.durationMs)}`,
      ),
      view.jaegerUrl !== "" &&
        h("a", { class: "button head-link", href: view.jaegerUrl, rel: "noreferrer" }, "In Jaeger"),
    ),
    h("p", { class: "small faint mono trace-id" }, view.traceId),
    view.unreadablePieces > 0 &&
      h("p", { class: "notice" }, `${view.unreadablePieces} stored parts of this trace cannot be read.`),
    h(
      "div",
      { class: "legend section trace-legend" },
      services.map((service) =>
        h(
          "span",
          { class: `curve-${curveOf(service)}` },
          h("span", { class: "swatch" }),
          service || "(no service)",
        ),
      ),
    ),
    h("div", { class: "trace" }, h("div", { class: "card spans-card" }, list), panel),
  );
  const first = rows[0];
  if (first !== undefined) show(first.span);
  list.querySelector("button")?.setAttribute("aria-pressed", "true");
}

interface SpanRow {
  readonly span: SpanView;
  readonly depth: number;
}

/** Spans in the order of the tree, each with its depth. A span whose parent is not stored is at the top. */
function treeOf(spans: readonly SpanView[]): readonly SpanRow[] {
  const known = new Set(spans.map(({ spanId }) => spanId));
  const children = Map.groupBy(spans, ({ parentSpanId }) => (known.has(parentSpanId) ? parentSpanId : ""));
  const rows: SpanRow[] = [];
  const seen = new Set<string>();
  const walk = (parent: string, depth: number) => {
    for (const span of children.get(parent) ?? []) {
      // A span that is its own ancestor would make this endless.
      if (seen.has(span.spanId)) continue;
      seen.add(span.spanId);
      rows.push({ span, depth: Math.min(depth, MAX_DEPTH) });
      walk(span.spanId, depth + 1);
    }
  };
  walk("", 0);
  for (const span of spans) if (!seen.has(span.spanId)) rows.push({ span, depth: 0 });
  return rows;
}

function spanRow(
  span: SpanView,
  depth: number,
  totalMs: number,
  curve: number,
  onSelect: (button: HTMLElement) => void,
): HTMLElement {
  const total = Math.max(totalMs, 1e-6);
  return h(
    "li",
    {},
    h(
      "button",
      {
        class: `span-row curve-${curve}`,
        type: "button",
        "aria-pressed": "false",
        vars: { depth, from: span.startMs / total, size: span.durationMs / total },
        onclick: (event: Event) => onSelect(event.currentTarget as HTMLElement),
      },
      h(
        "span",
        { class: "span-name" },
        span.isError && h("span", { class: "span-error", title: "failed" }, "!"),
        span.name,
      ),
      h("span", { class: "span-track", "aria-hidden": "true" }, h("span", { class: "span-bar" })),
      h("span", { class: "span-time num" }, milliseconds(span.durationMs)),
    ),
  );
}

function spanDetails(span: SpanView, curve: number): Child {
  const table = (attributes: SpanView["attributes"]) =>
    h(
      "dl",
      { class: "attributes" },
      Object.entries(attributes)
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, value]) => [
          h("dt", {}, name),
          h("dd", { class: "mono" }, typeof value === "string" ? value : JSON.stringify(value)),
        ]),
    );
  return [
    h("h2", {}, span.name),
    h(
      "p",
      { class: "small soft" },
      h(
        "span",
        { class: `curve-${curve} swatch-line` },
        h("span", { class: "swatch" }),
        span.service || "(no service)",
      ),
      ` ${span.kind}, began at ${milliseconds(span.startMs)}, took ${milliseconds(span.durationMs)}`,
    ),
    span.isError && h("p", { class: "notice" }, span.statusMessage || "This span failed."),
    Object.keys(span.attributes).length > 0 && [h("h3", {}, "Attributes"), table(span.attributes)],
    span.events.length > 0 && [
      h("h3", {}, "Events"),
      span.events.map(({ name, atMs, attributes }) =>
        h(
          "div",
          { class: "span-event" },
          h("strong", {}, name),
          h("span", { class: "faint small" }, ` at ${milliseconds(atMs)}`),
          table(attributes),
        ),
      ),
    ],
    span.links.length > 0 && [
      h("h3", {}, "Links"),
      h(
        "ul",
        {},
        span.links.map(({ traceId }) =>
          h("li", {}, h("a", { class: "mono small", href: link("traces", traceId) }, traceId)),
        ),
      ),
    ],
  ];
}
