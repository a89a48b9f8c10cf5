/** Metrics of this replica's generations and of the steps of its engine. */

import { counterOf, histogramOf, Instrument } from "@hone/telemetry";
import type { EngineGeneration } from "./inference-engine.ts";

/** One step of an engine. */
export interface StepFigures {
  readonly ms: number;
  /** Sequences in the batch. */
  readonly sequences: number;
}

const MS_PER_SECOND = 1_000;
const prefillTokens = counterOf(Instrument.prefillTokens).of({});
const cachedTokens = counterOf(Instrument.cachedTokens).of({});
const sampledTokens = counterOf(Instrument.sampledTokens).of({});
const queueSeconds = histogramOf(Instrument.generationQueueSeconds).of({});
const stepSeconds = histogramOf(Instrument.engineStepSeconds).of({});
const batchSize = histogramOf(Instrument.engineBatchSize).of({});

export function countGeneration({ tokenIds, metrics }: EngineGeneration): void {
  prefillTokens.add(metrics.prefillTokens);
  cachedTokens.add(metrics.cachedTokens);
  sampledTokens.add(tokenIds.length);
  queueSeconds.observe(metrics.queueMs / MS_PER_SECOND);
}

export function countEngineStep({ ms, sequences }: StepFigures): void {
  stepSeconds.observe(ms / MS_PER_SECOND);
  batchSize.observe(sequences);
}
