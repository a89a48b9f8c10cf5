/** Parts that several views share. */

import { h } from "../dom.js";
import { count, words } from "../format.js";

const PHASES = {
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

const OUTCOMES = {
  completed: "good",
  truncated: "warn",
  agent_failed: "bad",
  timed_out: "bad",
  infra_failed: "bad",
  cancelled: "plain",
  stale: "plain",
};

/** Names of the outcomes, in the order in which a filter offers them. */
export const OUTCOME_NAMES = Object.keys(OUTCOMES);

export function phaseBadge(phase) {
  const [label, tone] = PHASES[phase] ?? [words(phase), "plain"];
  return h("span", { class: "badge", data: { tone } }, label);
}

/** How an outcome is coloured. */
export function outcomeTone(outcome) {
  return OUTCOMES[outcome] ?? "plain";
}

export function outcomeBadge(outcome) {
  return h("span", { class: "badge", data: { tone: outcomeTone(outcome) } }, words(outcome));
}

/** The same for a table, where a column of badges would shout. */
export function outcomeText(outcome) {
  return h("span", { class: "outcome", data: { tone: outcomeTone(outcome) } }, words(outcome));
}

/** What went wrong in the rollouts that were gathered last, a line each; null where nothing did. */
export function troublesOf({ troubles }) {
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

/** What is missing here, as this page's service was too far behind. */
export function unreadText({ unreadRollouts }) {
  return `${count(unreadRollouts)} rollouts cannot be shown: the tracer or its database was away for so long that they were dropped before it had read them. Training has them all.`;
}

/** What is no longer kept of a run. */
export function removedText({ removedRollouts }) {
  return `${count(removedRollouts)} older rollouts are no longer kept, with their spans; the curves have them all.`;
}

/** Whether a run will change by itself. */
export function isOver(phase) {
  return phase === "completed" || phase === "failed" || phase === "cancelled";
}

/** A bar filled to a share of 0 to 1. */
export function progressBar(share, label) {
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

/** What a run does within its step or its warm start, as words and a share; null when it does not say. */
export function progressOf(run) {
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
