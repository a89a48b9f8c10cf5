/** The lines that the command line prints about a run: the live line, plain lines and the summary at the end. */

import { RunPhase } from "@hone/proto-gen/run";
import { clock, figure, share } from "../../format.ts";
import { type EvaluationRecord, type RunView, type StepRecord, timeLeftMs } from "../run-view.ts";
import { drawCurve } from "./curve.ts";
import { partShares, partsText } from "./part-shares.ts";
import { troubleCounts, troubleLines } from "./trouble-lines.ts";

const CURVE = { width: 64, height: 8 } as const;

/** The live line, which is rewritten in place: the newest figures and what the run does now. */
export function liveLine(view: RunView): string {
  const last = view.steps.at(-1);
  const now = nowText(view);
  if (last === undefined) return now;
  const counts = last.troubles && troubleCounts(last.troubles);
  return [stepFigures(view, last), ...(counts ? [counts] : []), now].join("  ").trimEnd();
}

/** One committed step: its figures, and what went wrong in it. */
export function stepLine(view: RunView, record: StepRecord): string {
  const troubles = record.troubles === undefined ? [] : troubleLines(record.troubles);
  return [stepFigures(view, record), ...troubles].join("  ");
}

/** The last step of a run as `hone status` shows it: its figures, and how long the trainer and the engines had nothing to do. */
export function lastStepLine(totalSteps: number, record: Pick<StepRecord, "step" | "metrics">): string {
  const { "idle/trainer": trainer, "idle/engines": engines } = record.metrics;
  const idle = [
    ...(trainer === undefined ? [] : [`the trainer waited for rollouts ${percent(trainer)} of the time`]),
    ...(engines === undefined ? [] : [`the engines idled ${percent(engines)}`]),
  ];
  return [...figuresOf(totalSteps, record), ...(idle.length === 0 ? [] : [idle.join(", ")])].join("  ");
}

function percent(part: number): string {
  return `${Math.round(100 * part)} %`;
}

/** Step, success, reward, tokens and episodes a second, age of the tokens, time left. */
function stepFigures(view: RunView, record: StepRecord): string {
  const left = record === view.steps.at(-1) ? timeLeftMs(view) : undefined;
  const parts = figuresOf(view.totalSteps, record);
  if (left !== undefined) parts.push(`${clock(left)} left`);
  return parts.join("  ");
}

function figuresOf(totalSteps: number, { step, metrics }: Pick<StepRecord, "step" | "metrics">): string[] {
  const width = String(totalSteps).length;
  return [
    `step ${String(step).padStart(width)}/${totalSteps}`,
    `success ${share(metrics.success)}${partsText(metrics)}`,
    `reward ${share(metrics["reward/mean"])}`,
    `${figure(metrics.tokens_per_second)} tokens/s`,
    `${figure(metrics.episodes_per_second)} episodes/s`,
    ...staleness(metrics),
    ...deadline(metrics),
  ];
}

/** How old the tokens of an asynchronous run's step were, and what became of the groups that it did not take. */
function staleness(metrics: StepRecord["metrics"]): string[] {
  const {
    "staleness/mean": mean,
    "staleness/max": most,
    "groups/open": open,
    "groups/too_old": old,
    "rollouts/waiting": waiting,
  } = metrics;
  if (mean === undefined) return [];
  const scored = waiting === undefined ? "" : ` with ${figure(waiting)} scored rollouts`;
  const groups = `${figure(open)} groups out${scored}, ${figure(old)} given up`;
  return [`tokens ${mean.toFixed(2)} versions old, at most ${figure(most)}`, groups];
}

/** The deadline that was derived from what attempts have taken, and how many rollouts of the step such deadlines ended. */
function deadline({ "deadline/ms": deadlineMs, "deadline/ended": ended }: StepRecord["metrics"]): string[] {
  return deadlineMs === undefined ? [] : [`deadline ${figure(deadlineMs)} ms, which ended ${figure(ended)}`];
}

/** `version 120: held-out success 0.74 greedy (1,000 tasks)`. */
export function evaluationLine(record: EvaluationRecord): string {
  const value = record.metrics.success ?? record.metrics["reward/mean"];
  const what = record.metrics.success === undefined ? "held-out reward" : "held-out success";
  return `version ${record.version}: ${what} ${share(value)} ${record.mode} (${figure(record.metrics.tasks ?? record.episodes)} tasks)${partsText(record.metrics)}`;
}

/** What the run does or waits for now, in a few words. */
export function nowText(view: RunView): string {
  const rollouts =
    view.rollouts === undefined ? "" : ` ${view.rollouts.done}/${view.rollouts.total} rollouts`;
  switch (view.phase) {
    case RunPhase.UNSPECIFIED:
    case RunPhase.WAITING:
      return view.waitingFor === "" ? "waiting" : `waiting for ${view.waitingFor}`;
    case RunPhase.WARM_START:
      return warmStartText(view);
    case RunPhase.ROLLOUT:
      return rollouts.trim() || "rollouts";
    case RunPhase.TRAIN:
      return "training";
    case RunPhase.COMMIT:
      return "committing";
    case RunPhase.EVALUATE:
      return `evaluating${rollouts}`;
    case RunPhase.PAUSED:
      return "paused";
    case RunPhase.COMPLETED:
      return "completed";
    case RunPhase.FAILED:
      return "failed";
    case RunPhase.CANCELLED:
      return "cancelled";
    default:
      // A newer trainer may have phases that this command line does not know.
      return `phase ${view.phase}`;
  }
}

function warmStartText({ warmStart }: RunView): string {
  if (warmStart === undefined) return "warm start";
  const { rollouts, updates, loss } = warmStart;
  if (updates.total === 0) return `warm start: ${rollouts.done}/${rollouts.total} rollouts`;
  const shownLoss = Number.isNaN(loss) ? "" : `, loss ${figure(loss)}`;
  return `warm start: ${updates.done}/${updates.total} updates${shownLoss}`;
}

/** The summary at the end of a run: its curve, held-out success before and after, and the folder of its checkpoint. */
export function endLines(view: RunView, checkpoint: string | undefined): string[] {
  const lines: string[] = [];
  const success = view.steps.map(({ metrics }) => metrics.success ?? metrics["reward/mean"] ?? 0);
  if (success.length > 1) {
    const name = view.steps.some(({ metrics }) => metrics.success !== undefined) ? "success" : "reward";
    lines.push(
      ...drawCurve(success, CURVE),
      `     └ ${name} of the rollouts, steps 1 to ${view.steps.at(-1)?.step}`,
      "",
    );
  }
  for (const mode of new Set(view.evaluations.map((each) => each.mode))) {
    const ofMode = view.evaluations
      .filter((each) => each.mode === mode)
      .sort((a, b) => a.version - b.version);
    const [first, last] = [ofMode[0], ofMode.at(-1)];
    if (first === undefined || last === undefined) continue;
    const describe = (record: EvaluationRecord, when: string) =>
      `${share(record.metrics.success ?? record.metrics["reward/mean"])} ${when} (version ${record.version}, ${figure(record.metrics.tasks ?? record.episodes)} tasks)`;
    lines.push(
      `held-out success, ${mode.padEnd("sampled".length)}  ${describe(first, "before")}, ${describe(last, "after")}`,
    );
    const before = partShares(first.metrics);
    for (const [name, value] of partShares(last.metrics)) {
      lines.push(`  ${name}  ${share(before.get(name))} before, ${share(value)} after`);
    }
  }
  if (checkpoint !== undefined) lines.push(`checkpoint  ${checkpoint}`);
  return lines;
}
