/** The view of one run: what it is doing, how it learns, and its rollouts. */

import { read, runPath } from "../../api.ts";
import type { RunAnswer, Series } from "../../api-types.ts";
import { h, replace } from "../../dom.ts";
import { onHealth } from "../../health.ts";
import { everySecond, onChange } from "../../live.ts";
import type { ViewContext } from "../../view.ts";
import { rolloutsTable } from "../lists/rollouts-table.ts";
import { isOver } from "../parts.ts";
import { tickTimes } from "../runs.ts";
import { costSection } from "./cost.ts";
import { runActions } from "./run-actions.ts";
import { type MetricInfo, runCharts } from "./run-charts.ts";
import { evaluationsTable, loadText, runFile, runHead, runNow, runTiles } from "./run-head.ts";
import { growingSeries } from "./series.ts";
import { stepSection } from "./step.ts";
import { waitingRollouts } from "./waiting-rollouts.ts";

export async function runView({ root, params, signal, setPlace }: ViewContext): Promise<void> {
  const { run: runId = "" } = params;
  setPlace(runId, [[runId]]);
  const series = growingSeries(runId, signal);
  // Everything is asked for at once, as the answers do not depend on one another.
  const table = rolloutsTable({ runId, signal });
  const [first, metricInfo] = await Promise.all([
    read<RunAnswer>(runPath(runId), { signal }),
    read<MetricInfo>("/metrics", { signal }),
    series.readMore(),
  ]);
  let run = first;

  const head = h("div", { class: "run-head" });
  const now = h("div");
  const load = h("p", { class: "run-load small soft num" });
  const tiles = h("dl", { class: "card tiles" });
  const charts = runCharts(metricInfo);
  const step = stepSection({ runId, signal });
  const evaluated = h("section", { class: "section" });
  const actions = runActions(runId);
  const waiting = waitingRollouts(runId, signal);
  const cost = costSection(runId, signal);
  replace(
    root,
    head,
    actions.element,
    now,
    load,
    tiles,
    waiting.element,
    charts.main,
    step.element,
    cost.element,
    charts.multiples,
    table.element,
    evaluated,
    runFile(run.config),
  );

  const draw = () => {
    const shown: Series = series.value;
    replace(head, runHead(run));
    actions.update(run);
    replace(now, runNow(run));
    replace(tiles, runTiles(run, shown));
    charts.update(shown, run.evaluations);
    replace(evaluated, run.evaluations.length === 0 ? [] : evaluationsTable(run.evaluations));
    tickTimes(root);
  };
  /** What is further down, or asks more of the database, is read when the rollouts are there. */
  const drawRest = async () => {
    step.update(series.value);
    await Promise.all([
      cost.refresh(series.value),
      table.refreshTotal(),
      isOver(run.phase) ? undefined : waiting.refresh(),
    ]);
  };
  draw();
  void table.ready.then(drawRest).catch((error: unknown) => {
    if (!signal.aborted) console.warn("a part of the view could not be drawn", error);
  });
  onChange(runId, signal, async () => {
    const [next] = await Promise.all([read<RunAnswer>(runPath(runId), { signal }), series.readMore()]);
    run = next;
    draw();
    await table.refresh();
    await drawRest();
  });
  everySecond(signal, () => tickTimes(root));
  onHealth(signal, (health) => replace(load, isOver(run.phase) ? [] : loadText(health, series.value)));
}
