/** Prints scores as a table, and formats verdicts for a file of JSON Lines. */

import type { Verdict } from "@hone/judge/scoring";
import { type Terminal, table } from "../terminal.ts";
import type { ScoreSummary } from "./score-all.ts";

/** Prints the scores of all episodes. @returns the exit code: 1 if a judge failed. */
export function printSummary(terminal: Terminal, summary: ScoreSummary): number {
  const rows = summary.judges.map(({ judge, count, mean }) => [
    judge,
    `mean ${shown(mean)}`,
    `${count} scored`,
  ]);
  rows.push(["reward", `mean ${shown(summary.rewardMean)}`, `${summary.scored} scored`]);
  for (const line of table(rows)) terminal.line(line);
  if (summary.passed > 0)
    terminal.line(`${summary.passed} were left out, as their outcome says nothing about the agent`);
  if (summary.failed > 0) terminal.line(`${summary.failed} could not be judged:`);
  for (const reason of summary.reasons) terminal.line(`  ${reason}`);
  return summary.failed > 0 ? 1 : 0;
}

/** A verdict as part of a JSON line. */
export function verdictRecord(verdict: Verdict): Readonly<Record<string, unknown>> {
  switch (verdict.kind) {
    case "scored":
      return { reward: verdict.reward, scores: verdict.scores };
    case "failed":
      return { failed: verdict.reason };
    case "passed":
      return { passed: true };
  }
}

function shown(value: number): string {
  return Number.isFinite(value) ? value.toFixed(4) : "none";
}
