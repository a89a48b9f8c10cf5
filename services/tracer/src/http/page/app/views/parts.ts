/** Elements that several views share. */

import type { RunSummary } from "../api-types.ts";
import { type Child, h } from "../dom.ts";
import { count, duration, words } from "../format.ts";

const PHASES: Readonly<Record<string, readonly [label: string, tone: string]>> = {
  waiting: ["Waiting", "warn"],
  warm_start: ["Warm start", "active"],
  rollout: ["Making rollouts", "active"],
  train: ["Training", "active"],
  commit: ["Committing", "active"],
  evaluate: ["Evaluating", "active"],
  paused: ["Paused", "warn"],
  completed: ["Completed", "good"],
  failed: ["Failed", "bad"],
  cancelled: ["Cancelled", "plain"],
};

const OUTCOMES: Readonly<Record<string, string>> = {
  completed: "good",
  truncated: "warn",
  agent_failed: "bad",
  timed_out: "bad",
  infra_failed: "bad",
  cancelled: "plain",
  stale: "plain",
};

/** What cut a token, by what the ledger names it. */
const CUTS: Readonly<Record<string, string>> = {
  none: "not cut",
  clip_low: "at the lower clip",
  clip_high: "at the upper clip",
  dual_clip: "at the dual clip",
  mask: "left out by the loss",
  selected: "chosen by the loss",
  bound: "at the bound of the weight",
  rejected: "rejected by the correction",
};

/** How long ago a time was; `tickTimes` keeps the text up to date. */
export function sinceText(timeMs: number) {
  return h("span", { class: "num", data: { since: timeMs } }, duration(Date.now() - timeMs));
}

/** Names of the outcomes, in the order in which a filter offers them. */
export const OUTCOME_NAMES = Object.keys(OUTCOMES);

export function phaseBadge(phase: string) {
  const [label, tone] = PHASES[phase] ?? [words(phase), "plain"];
  return h("span", { class: "badge", data: { tone } }, label);
}

/** The name of an outcome's colour. */
export function outcomeTone(outcome: string): string {
  return OUTCOMES[outcome] ?? "plain";
}

export function outcomeBadge(outcome: string) {
  return h("span", { class: "badge", data: { tone: outcomeTone(outcome) } }, words(outcome));
}

/** An outcome as plain text, for tables, where a column of badges would be too prominent. */
export function outcomeText(outcome: string) {
  return h("span", { class: "outcome", data: { tone: outcomeTone(outcome) } }, words(outcome));
}

/** What went wrong in the most recent rollouts, as a list of lines; null where nothing did. */
export function troublesOf({ troubles }: Pick<RunSummary, "troubles">) {
  if (troubles === null) return null;
  const { madeFor, rollouts, outcomes, tools } = troubles;
  const what = madeFor.charAt(0).toUpperCase() + madeFor.slice(1);
  return [
    ...outcomes.map(({ outcome, count: ended, reason, reasonCount }) => ({
      outcome,
      text: `${what}: ${count(ended)} of ${count(rollouts)} rollouts ended as ${words(outcome).toLowerCase()}`,
      reason,
      note: reasonCount < ended ? `${count(reasonCount)} of them` : "",
    })),
    ...tools.map(({ name, calls, error }) => ({
      outcome: "infra_failed",
      text: `${what}: all ${count(calls)} calls of the tool ${name} failed`,
      reason: error,
      note: "",
    })),
  ];
}

/** Says how many rollouts the tracer missed because it was too far behind. */
export function unreadText({ unreadRollouts }: Pick<RunSummary, "unreadRollouts">): string {
  return `${count(unreadRollouts)} rollouts cannot be shown: the tracer or its database was down for so long that they were dropped before the tracer had read them. Training used all of them.`;
}

/** Says how many rollouts of a run are no longer kept. */
export function removedText({ removedRollouts }: { readonly removedRollouts: number }): string {
  return `${count(removedRollouts)} older rollouts and their spans are no longer kept; the curves include all of them.`;
}

/** Whether a run has ended. */
export function isOver(phase: string): boolean {
  return phase === "completed" || phase === "failed" || phase === "cancelled";
}

/** A bar filled to a share of 0 to 1. */
export function progressBar(share: number, label: string) {
  const percent = Math.round(Math.max(0, Math.min(1, share)) * 100);
  return h(
    "div",
    {
      class: "bar",
      role: "progressbar",
      "aria-valuemin": 0,
      "aria-valuemax": 100,
      "aria-valuenow": percent,
      "aria-label": label,
    },
    h("span", { vars: { share: percent / 100 } }),
  );
}

/** The progress of a run within its step or its warm start, as text and as a share; null when it is not known. */
export function progressOf(
  run: Pick<RunSummary, "progress" | "phase">,
): { readonly text: string; readonly share: number } | null {
  const { progress } = run;
  if (progress === null || isOver(run.phase)) return null;
  if (progress.kind === "rollouts") {
    return {
      text: `Step ${progress.step}: ${progress.done} of ${progress.total} rollouts`,
      share: progress.done / Math.max(1, progress.total),
    };
  }
  const { rolloutsDone, rolloutsTotal, updatesDone, updatesTotal } = progress;
  if (updatesTotal > 0)
    return {
      text: `Warm start: ${updatesDone} of ${updatesTotal} updates`,
      share: updatesDone / updatesTotal,
    };
  return {
    text: `Warm start: ${rolloutsDone} of ${rolloutsTotal} rollouts of the scripted policy`,
    share: rolloutsDone / Math.max(1, rolloutsTotal),
  };
}

/** One figure of a row of tiles. */
export function tile(name: string, value: Child, note?: string | null): HTMLElement {
  return h("div", { class: "tile" }, h("dt", {}, name), h("dd", {}, value, h("small", {}, note || "\u00a0")));
}

/** A head of a table. @param columns texts, and whether each is aligned to the right. */
export function tableHead(columns: ReadonlyArray<readonly [text: Child, isRight?: boolean]>): HTMLElement {
  return h(
    "thead",
    {},
    h(
      "tr",
      {},
      columns.map(([text, isRight = false]) => h("th", { class: isRight && "right", scope: "col" }, text)),
    ),
  );
}

/** What cut a token, in words. */
export function cutText(cut: string): string {
  return CUTS[cut] ?? cut;
}
