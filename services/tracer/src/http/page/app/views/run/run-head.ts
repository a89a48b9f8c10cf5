/** The head of a run: what it is doing now, what went wrong, and its most important figures. */

import type { Evaluation, RunAnswer, Series, StackHealth } from "../../api-types.ts";
import { type Child, h } from "../../dom.ts";
import { count, duration, type Maybe, number, percent, signed } from "../../format.ts";
import {
  isOver,
  outcomeTone,
  phaseBadge,
  progressBar,
  progressOf,
  removedText,
  sinceText,
  tableHead,
  tile,
  troublesOf,
  unreadText,
} from "../parts.ts";
import { ownerText } from "../runs.ts";
import { lastOf } from "./series.ts";

/** Who had nothing to do in the last step, and what waits where: on the bus, of all runs, and at the trainer, of this run. */
export function loadText({ queues }: StackHealth, { metrics }: Series): string {
  const waits = lastOf(metrics["idle/trainer"]);
  const idle = lastOf(metrics["idle/engines"]);
  const open = lastOf(metrics["groups/open"]);
  const scored = lastOf(metrics["rollouts/waiting"]);
  const queue = (
    name: string,
    { pending, inWork }: { readonly pending: number; readonly inWork: number },
    owner: string,
  ) => `${count(pending)} ${name} wait for ${owner}, which works on ${count(inWork)}`;
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

export function runHead(run: RunAnswer): Child {
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

/** What it waits for, how far it is, and what went wrong. */
export function runNow(run: RunAnswer): Child {
  const lines: Child[] = [];
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

export function runTiles(run: RunAnswer, { steps, metrics }: Series): Child {
  const last = (name: string) => lastOf(metrics[name]);
  const sampled = run.evaluations.filter(({ mode }) => mode === "sampled");
  const [firstEvaluation, latest] = [sampled[0], sampled.at(-1)];
  const figureOf = (evaluation: Evaluation | undefined) =>
    evaluation?.metrics.success ?? evaluation?.metrics["reward/mean"] ?? null;
  const before = figureOf(firstEvaluation);
  const after = figureOf(latest);
  const gain =
    latest === firstEvaluation || before === null || after === null
      ? undefined
      : `${signed((after - before) * 100, 1)} points since version ${firstEvaluation?.version}`;
  const tokens = last("tokens_per_second");
  return [
    tile("Held-out success", percent(after, 1), gain ?? (latest && `version ${latest.version}`)),
    tile("Success in training", percent(last("success"), 1), steps.length > 0 ? `step ${steps.at(-1)}` : ""),
    tile(
      "Reward",
      number(last("reward/mean"), 3),
      last("reward/std") === null ? "" : `± ${number(last("reward/std"), 2)}`,
    ),
    tile("Policy version", count(run.version), run.totalSteps > 0 ? `of ${count(run.totalSteps)}` : ""),
    tile(
      "Episodes",
      perSecond(last("episodes_per_second")),
      tokens === null ? "" : `${count(Math.round(tokens))} tokens/s`,
    ),
    tile("Train/sample mismatch", number(last("mismatch/max"), 2), "largest |Δ logprob|"),
  ];
}

function perSecond(value: Maybe): string {
  return value === null || value === undefined ? "–" : `${number(value, 3)}/s`;
}

export function evaluationsTable(evaluations: readonly Evaluation[]): Child {
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
  const columns = [
    ["Version", true],
    ["Mode"],
    ["Success", true],
    ["Reward", true],
    ["Episodes", true],
  ] as const;
  return [
    h(
      "div",
      { class: "section-head" },
      h("h2", {}, "Evaluations"),
      h("span", { class: "small faint" }, "on seeds that are never trained on"),
    ),
    h("div", { class: "card table-wrap" }, h("table", {}, tableHead(columns), h("tbody", {}, rows))),
  ];
}

export function runFile(config: RunAnswer["config"]): Child {
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
