/** Compares a replay with the run whose rollouts it trained again. */

import type { RunState } from "@hone/proto-gen/run";
import { figure } from "../format.ts";
import { evaluationTable } from "../run/evaluation-table.ts";
import type { RunView, StepRecord } from "../run/run-view.ts";
import { table } from "../terminal.ts";

/** Figures that training decides; those of the rollouts are the same in both. */
const FIGURES = ["loss", "grad_norm", "entropy", "clip_fraction", "mismatch/mean"];
/** At most so many steps are shown, the last among them. */
const MAX_STEPS = 10;

/** @returns the lines of the comparison: figures of steps, held-out results, and whether the weights are the same. */
export function comparisonLines(
  recorded: RunView,
  replay: RunView,
  states: readonly Pick<RunState, "runId" | "version" | "digest">[],
): string[] {
  return [
    ...stepTable(recorded.steps, replay.steps),
    ...[recorded, replay].flatMap(({ runId, evaluations }) =>
      evaluations.length === 0 ? [] : ["", runId, ...evaluationTable(evaluations)],
    ),
    "",
    weightsLine(recorded.runId, replay.runId, states),
  ];
}

function stepTable(recorded: readonly StepRecord[], replay: readonly StepRecord[]): string[] {
  const before = new Map(recorded.map((record) => [record.step, record.metrics]));
  const figures = FIGURES.filter((name) => replay.some(({ metrics }) => metrics[name] !== undefined));
  const every = Math.max(1, Math.ceil(replay.length / MAX_STEPS));
  const shown = replay.filter((_, index) => (replay.length - 1 - index) % every === 0);
  const rows = shown.map(({ step, metrics }) => [
    String(step),
    ...figures.flatMap((name) => [figure(before.get(step)?.[name]), figure(metrics[name])]),
  ]);
  return table([["step", ...figures.flatMap((name) => [name, "replay"])], ...rows]);
}

function weightsLine(
  recorded: string,
  replay: string,
  states: readonly Pick<RunState, "runId" | "version" | "digest">[],
): string {
  const [then, now] = [recorded, replay].map((runId) => states.find((state) => state.runId === runId));
  if (then === undefined || now === undefined || then.version !== now.version) {
    return `the weights are not compared: ${recorded} is at version ${then?.version ?? "-"} and ${replay} at version ${now?.version ?? "-"}`;
  }
  return then.digest === now.digest
    ? `version ${now.version} has the same weights in both, bit for bit (${now.digest.slice(0, 8)})`
    : `version ${now.version} has other weights: ${then.digest.slice(0, 8)} in ${recorded}, ${now.digest.slice(0, 8)} in ${replay}`;
}
