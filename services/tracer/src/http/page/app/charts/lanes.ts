/** A chart of who worked when in a step: one lane for the trainer's phases, and one for each kind of other work. */

import type { StepTimeline } from "../api-types.ts";
import { type Child, h, s } from "../dom.ts";
import { count, milliseconds, percent } from "../format.ts";
import { niceTicks } from "./scale.ts";

/** What the trainer does in a step: its name in the chart, and its colour. */
const PHASES: Readonly<Record<string, readonly [name: string, colour: string]>> = {
  wait: ["waits for rollouts", "wait"],
  score: ["scores", "3"],
  train: ["trains", "1"],
  commit: ["commits", "2"],
  publish: ["publishes", "4"],
};
const LANES: Readonly<Record<string, readonly [title: string, unit: string]>> = {
  engine: ["Engine", "generations"],
  agents: ["Agents", "rollouts"],
  tools: ["Tools and environments", "calls"],
  judge: ["Judge", "episodes"],
};

/** Height of the least work, as a share of the lane, so that it is seen. */
const LEAST_HEIGHT = 0.08;

export function laneChart({ durationMs, phases, lanes }: StepTimeline): HTMLElement {
  return h("div", { class: "lanes" }, trainerLane(phases, durationMs), lanes.map(workLane), axis(durationMs));
}

/** The colours of the trainer's phases. */
export function phaseLegend(phases: StepTimeline["phases"]): HTMLElement {
  return h(
    "div",
    { class: "legend" },
    phases.map(({ name }) =>
      h("span", { class: curveOf(name) }, h("span", { class: "swatch lane-swatch" }), phaseName(name)),
    ),
  );
}

function curveOf(phase: string): string {
  return `curve-${PHASES[phase]?.[1] ?? "wait"}`;
}

function phaseName(phase: string): string {
  return PHASES[phase]?.[0] ?? phase;
}

function trainerLane(phases: StepTimeline["phases"], durationMs: number): HTMLElement {
  const texts = phases.map(({ name, fromMs, toMs }) => `${phaseName(name)} ${milliseconds(toMs - fromMs)}`);
  const wait = phases.find(({ name }) => name === "wait");
  const bars = phases.map(({ name, fromMs, toMs }, i) =>
    h("span", {
      class: `lane-phase ${curveOf(name)}`,
      title: `${texts[i]}, from ${milliseconds(fromMs)} on`,
      vars: { from: fromMs / durationMs, size: (toMs - fromMs) / durationMs },
    }),
  );
  const figure = wait === undefined ? "" : `waits ${percent((wait.toMs - wait.fromMs) / durationMs)}`;
  return lane("Trainer", "", bars, figure, texts.join(", "));
}

function workLane({ kind, name, busyShare, most, counts }: StepTimeline["lanes"][number]): HTMLElement {
  const [title, unit] = LANES[kind] ?? [kind, ""];
  const idle = `idle ${percent(1 - busyShare)}`;
  const atOnce = `up to ${count(most)} ${unit} at once`;
  const steps = counts.map((value, i) => {
    const y = (1 - (value === 0 ? 0 : Math.max(LEAST_HEIGHT, value / most))).toFixed(3);
    return `L${i} ${y}L${i + 1} ${y}`;
  });
  const area = s(
    "svg",
    { class: "lane-area", viewBox: `0 0 ${counts.length} 1`, preserveAspectRatio: "none" },
    s("path", { d: `M0 1${steps.join("")}L${counts.length} 1Z` }),
  );
  return lane(title, name, area, `${idle}, up to ${count(most)} at once`, `${idle}, ${atOnce}`);
}

/** @param label what screen readers read, and what is shown under the pointer. */
function lane(title: string, name: string, content: Child, figure: string, label: string): HTMLElement {
  return h(
    "div",
    { class: "lane" },
    h("span", { class: "lane-name", title: name || null }, title, name !== "" && h("small", {}, ` ${name}`)),
    h(
      "span",
      { class: "lane-track", role: "img", "aria-label": `${title} ${name}: ${label}`, title: label },
      content,
    ),
    h("span", { class: "lane-figure num" }, figure),
  );
}

function axis(durationMs: number): HTMLElement {
  const ticks = niceTicks(0, durationMs, 6);
  return h(
    "div",
    { class: "lane lane-axis", "aria-hidden": "true" },
    h("span"),
    h(
      "span",
      { class: "lane-track" },
      ticks.map((tick) =>
        h(
          "span",
          { class: "lane-tick num", vars: { from: tick / durationMs } },
          tick === 0 ? "0" : milliseconds(tick),
        ),
      ),
    ),
    h("span"),
  );
}
