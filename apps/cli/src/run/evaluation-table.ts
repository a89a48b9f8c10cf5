/** Formats evaluations as a table with one line each. */

import { figure, share } from "../format.ts";
import { table } from "../terminal.ts";
import type { EvaluationRecord } from "./run-view.ts";

/** @returns the lines of the table, the head first. */
export function evaluationTable(evaluations: readonly EvaluationRecord[]): string[] {
  const names = new Set(evaluations.flatMap(({ metrics }) => Object.keys(metrics).filter(isPassAt)));
  const passAt = [...names].sort((a, b) => kOf(a) - kOf(b));
  const hasSuccess = evaluations.some(({ metrics }) => metrics.success !== undefined);
  const head = [
    "version",
    "mode",
    "tasks",
    "rollouts",
    "reward",
    ...(hasSuccess ? ["success"] : []),
    ...passAt,
  ];
  const rows = evaluations.map(({ version, mode, episodes, metrics }) => [
    String(version),
    mode,
    figure(metrics.tasks),
    figure(episodes),
    rewardText(metrics),
    ...(hasSuccess ? [share(metrics.success)] : []),
    ...passAt.map((name) => share(metrics[name])),
  ]);
  return table([head, ...rows]);
}

/** The number of rollouts per outcome, such as `completed 38, truncated 2`; undefined if all of them completed. */
export function outcomeText({ metrics }: EvaluationRecord): string | undefined {
  const counts = Object.entries(metrics)
    .filter(([name, count]) => name.startsWith(OUTCOME) && count > 0)
    .map(([name, count]) => `${name.slice(OUTCOME.length).replaceAll("_", " ")} ${figure(count)}`);
  return counts.length === 1 && (metrics[`${OUTCOME}completed`] ?? 0) > 0 ? undefined : counts.join(", ");
}

const OUTCOME = "outcome/";

function rewardText(metrics: Readonly<Record<string, number>>): string {
  const mean = metrics["reward/mean"];
  if (mean === undefined) return "-";
  const error = metrics["reward/stderr"];
  return error === undefined ? mean.toFixed(3) : `${mean.toFixed(3)} ± ${error.toFixed(3)}`;
}

function isPassAt(name: string): boolean {
  return name.startsWith("pass@");
}

function kOf(name: string): number {
  return Number(name.slice("pass@".length));
}
