/** The view of one run: what it is doing, how it learns, and its rollouts. */

import { read } from "../../api.ts";
import { h, replace } from "../../dom.ts";
import { count, duration, number, percent, signed } from "../../format.ts";
import { onHealth } from "../../health.js";
import { everySecond, onChange } from "../../live.ts";
import {
  isOver,
  outcomeTone,
  phaseBadge,
  progressBar,
  progressOf,
  removedText,
  sinceText,
  troublesOf,
  unreadText,
} from "../parts.ts";
import { ownerText, tickTimes } from "../runs.js";
import { rolloutsTable } from "./rollouts-table.js";
import { runCharts } from "./run-charts.js";
import { stepSection } from "./step.js";

export async function runView({ root, params, signal, setPlace }) {
  const { run: runId } = params;
  setPlace(runId, [[runId]]);
  const [first, metricInfo] = await Promise.all([
    read(`/runs/${encodeURIComponent(runId)}`, { signal }),
    read("/metrics", { signal }),
  ]);
  let run = first;
  const series = { steps: [], timesMs: [], metrics: {} };
  await readMore(runId, series, signal);

  const head = h("div", { class: "run-head" });
  const now = h("div");
  const load = h("p", { class: "run-load small soft num" });
  const tiles = h("dl", { class: "card tiles" });
  const charts = runCharts(metricInfo);
  const step = stepSection({ runId, signal });
  const table = await rolloutsTable({ runId, signal });
  const evaluated = h("section", { class: "section" });
  replace(
    root,
    head,
    now,
    load,
    tiles,
    charts.main,
    step.element,
    charts.multiples,
    table.element,
    evaluated,
    runFile(run.config),
  );

  const draw = () => {
    replace(head, headOf(run));
    replace(now, nowOf(run));
    replace(tiles, tilesOf(run, series));
    charts.update(series, run.evaluations);
    step.update(series);
    replace(evaluated, run.evaluations.length === 0 ? [] : evaluationsTable(run.evaluations));
    tickTimes(root);
  };
  draw();
  onChange(runId, signal, async () => {
    const [next] = await Promise.all([
      read(`/runs/${encodeURIComponent(runId)}`, { signal }),
      readMore(runId, series, signal),
    ]);
    run = next;
    draw();
    await table.refresh();
  });
  everySecond(signal, () => tickTimes(root));
  onHealth(signal, (health) => replace(load, isOver(run.phase) ? [] : loadText(health, series)));
}

/** Who had nothing to do in the last step, and what waits where: on the bus, of all runs, and at the trainer, of this run. */
function loadText({ queues }, { metrics }) {
  const waits = lastOf(metrics["idle/trainer"]);
  const idle = lastOf(metrics["idle/engines"]);
  const open = lastOf(metrics["groups/open"]);
  const scored = lastOf(metrics["rollouts/waiting"]);
  const queue = (name, { pending, inWork }, owner) =>
    `${count(pending)} ${name} wait for ${owner}, which works on ${count(inWork)}`;
  return [
    waits !== null && `Last step: the trainer waited for rollouts ${percent(waits)} of the time`,
    idle !== null && `the engines idled ${percent(idle)}`,
    queues !== null && queue("jobs", queues.jobs, "agent-rollout"),
    queues !== null && queue("episodes", queues.episodes, "the judge"),
    open !== null && `${count(open)} groups are out`,
    scored !== null && `${count(scored)} scored rollouts wait for a later step`,
  ]
    .filter((part) => part !== false)
    .join(" · ");
}

function lastOf(values) {
  return values?.findLast((value) => value !== null) ?? null;
}

/** Reads the steps that `series` does not have yet, and appends them. */
async function readMore(runId, series, signal) {
  for (let hasMore = true; hasMore; ) {
    const after = series.steps.at(-1) ?? 0;
    const next = await read(`/runs/${encodeURIComponent(runId)}/steps`, { signal, query: { after } });
    const known = series.steps.length;
    series.steps.push(...next.steps);
    series.timesMs.push(...next.timesMs);
    for (const [name, values] of Object.entries(next.metrics)) {
      series.metrics[name] ??= new Array(known).fill(null);
      series.metrics[name].push(...values);
    }
    for (const values of Object.values(series.metrics)) {
      while (values.length < series.steps.length) values.push(null);
    }
    hasMore = next.hasMore;
  }
}

function headOf(run) {
  const { runId, phase, acceptedAtMs, endedAtMs } = run;
  const time =
    acceptedAtMs === null
      ? null
      : h(
          "span",
          { class: "soft small num" },
          "Started ",
          h("time", {
            datetime: new Date(acceptedAtMs).toISOString(),
            title: new Date(acceptedAtMs).toLocaleString(),
            data: { ago: acceptedAtMs },
          }),
          endedAtMs === null ? null : `, took ${duration(endedAtMs - acceptedAtMs)}`,
        );
  return [h("h1", {}, runId), phaseBadge(phase), time];
}

function nowOf(run) {
  const lines = [];
  const progress = progressOf(run);
  if (run.endReason !== "") lines.push(h("p", {}, run.endReason));
  if (run.checkpoint !== "")
    lines.push(h("p", { class: "soft small" }, "Last checkpoint: ", h("code", {}, run.checkpoint)));
  if (run.waitingFor !== "" && !isOver(run.phase)) {
    const since =
      run.waitingSinceMs === null
        ? null
        : h(
            "span",
            { class: "faint small num" },
            "for ",
            sinceText(run.waitingSinceMs),
            run.waitingOwner !== "" && `; ${ownerText(run.waitingOwner)}`,
          );
    lines.push(
      h(
        "div",
        { class: "run-now-line" },
        h("span", {}, h("span", { class: "faint" }, "Waiting for "), run.waitingFor),
        since,
      ),
    );
  }
  if (progress !== null) {
    lines.push(
      h(
        "div",
        {},
        run.waitingFor === "" && h("p", { class: "small soft" }, progress.text),
        progressBar(progress.share, progress.text),
      ),
    );
  }
  for (const { outcome, text, reason, note } of troublesOf(run) ?? []) {
    lines.push(
      h(
        "div",
        { class: "run-trouble" },
        h("span", { class: "outcome", data: { tone: outcomeTone(outcome) } }, text),
        reason !== "" && h("code", { class: "small" }, reason),
        note !== "" && h("span", { class: "faint small" }, note),
      ),
    );
  }
  if (run.unreadRollouts > 0) lines.push(h("p", { class: "small soft" }, unreadText(run)));
  if (run.removedRollouts > 0) lines.push(h("p", { class: "small soft" }, removedText(run)));
  if (lines.length === 0) return [];
  return h("div", { class: "card run-now", data: { tone: run.phase === "failed" ? "bad" : "plain" } }, lines);
}

function tilesOf(run, { steps, metrics }) {
  const last = (name) => lastOf(metrics[name]);
  const sampled = run.evaluations.filter(({ mode }) => mode === "sampled");
  const [firstEvaluation, latest] = [sampled[0], sampled.at(-1)];
  const figureOf = (evaluation) => evaluation?.metrics.success ?? evaluation?.metrics["reward/mean"] ?? null;
  const before = figureOf(firstEvaluation);
  const after = figureOf(latest);
  const hasMoved = latest !== undefined && latest !== firstEvaluation;
  const tile = (name, value, note) =>
    h("div", { class: "tile" }, h("dt", {}, name), h("dd", {}, value, h("small", {}, note || "\u00a0")));
  return [
    tile(
      "Held-out success",
      percent(after, 1),
      hasMoved
        ? `${signed((after - before) * 100, 1)} points since version ${firstEvaluation.version}`
        : latest && `version ${latest.version}`,
    ),
    tile("Success in training", percent(last("success"), 1), steps.length > 0 && `step ${steps.at(-1)}`),
    tile(
      "Reward",
      number(last("reward/mean"), 3),
      last("reward/std") !== null && `± ${number(last("reward/std"), 2)}`,
    ),
    tile("Policy version", count(run.version), run.totalSteps > 0 && `of ${count(run.totalSteps)}`),
    tile(
      "Episodes",
      perSecond(last("episodes_per_second")),
      last("tokens_per_second") !== null && `${count(Math.round(last("tokens_per_second")))} tokens/s`,
    ),
    tile("Train/sample mismatch", number(last("mismatch/max"), 2), "largest |Δ logprob|"),
  ];
}

function perSecond(value) {
  return value === null ? "–" : `${number(value, 3)}/s`;
}

function evaluationsTable(evaluations) {
  const rows = evaluations
    .toReversed()
    .map(({ version, mode, episodes, metrics }) =>
      h(
        "tr",
        {},
        h("td", { class: "right" }, version),
        h("td", {}, mode),
        h("td", { class: "right" }, percent(metrics.success, 1)),
        h("td", { class: "right" }, number(metrics["reward/mean"], 3)),
        h("td", { class: "right" }, count(episodes)),
      ),
    );
  const header = [
    ["Version", true],
    ["Mode", false],
    ["Success", true],
    ["Reward", true],
    ["Episodes", true],
  ];
  return [
    h(
      "div",
      { class: "section-head" },
      h("h2", {}, "Evaluations"),
      h("span", { class: "small faint" }, "on seeds that are never trained on"),
    ),
    h(
      "div",
      { class: "card table-wrap" },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            header.map(([text, isRight]) => h("th", { class: isRight && "right", scope: "col" }, text)),
          ),
        ),
        h("tbody", {}, rows),
      ),
    ),
  ];
}

function runFile(config) {
  if (config === null) return null;
  return h(
    "section",
    { class: "section" },
    h(
      "details",
      { class: "card" },
      h("summary", { class: "run-file-summary" }, "Run file, resolved"),
      h("pre", { class: "code", tabindex: 0 }, JSON.stringify(config, null, 2)),
    ),
  );
}
