/** Metrics of the runs that this process owns; the series of a run end when its ownership ends. */

import { histogramOf, Instrument, observeMetric } from "@hone/telemetry";
import type { LastStep, RunStatus } from "./run-status.ts";

const MS_PER_SECOND = 1_000;
const phases = histogramOf(Instrument.stepSeconds);

/** Reports phase, version, wait and last step of a run at each collection of metrics, until it is disposed of. */
export function observeRun(status: () => RunStatus, lastStep: () => LastStep): Disposable {
  const run = status().runId;
  const observers = [
    observeMetric(Instrument.runPhase, () => [{ labels: { run, phase: status().phase }, value: 1 }]),
    observeMetric(Instrument.runVersion, () => [{ labels: { run }, value: status().version }]),
    observeMetric(Instrument.runSteps, () => [{ labels: { run }, value: status().totalSteps }]),
    observeMetric(Instrument.runWaiting, () => {
      const { waitingOwner: owner, waitingSinceMs } = status();
      if (owner === "") return [];
      return [{ labels: { run, owner }, value: (Date.now() - waitingSinceMs) / MS_PER_SECOND }];
    }),
    observeMetric(Instrument.runLastStep, () => [
      { labels: { run }, value: lastStep().atMs / MS_PER_SECOND },
    ]),
    observeMetric(Instrument.runMismatch, () => {
      const { mismatchMean } = lastStep();
      return mismatchMean === undefined ? [] : [{ labels: { run }, value: mismatchMean }];
    }),
  ];
  return {
    [Symbol.dispose]() {
      for (const observer of observers) observer[Symbol.dispose]();
    },
  };
}

/** Reports what waits to be trained at each collection of metrics, until it is disposed of. @param groups undefined = the run is synchronous. */
export function observeQueues(
  run: string,
  rollouts: { readonly size: number },
  groups: { readonly size: number } | undefined,
): Disposable {
  const observers = [
    observeMetric(Instrument.runRolloutsWaiting, () => [{ labels: { run }, value: rollouts.size }]),
    observeMetric(Instrument.runGroupsOpen, () =>
      groups === undefined ? [] : [{ labels: { run }, value: groups.size }],
    ),
  ];
  return {
    [Symbol.dispose]() {
      for (const observer of observers) observer[Symbol.dispose]();
    },
  };
}

/** Counts how long a phase of a step took. */
export function countStepPhase(phase: string, ms: number): void {
  phases.of({ phase }).observe(ms / MS_PER_SECOND);
}
