/** Converts outcomes, slots and sampling between their messages on the bus and the types of the domain. */

import { create } from "@bufbuild/protobuf";
import { type Outcome, type Slot, Split, TerminalError } from "@hone/core";
import {
  type Sampling,
  SlotSchema,
  OnNewVersion as WireOnNewVersion,
  Outcome as WireOutcome,
  type Slot as WireSlot,
} from "@hone/proto-gen/rollout";
import { Quantization as WireQuantization } from "@hone/proto-gen/run";
import { mapParameters, OnNewVersion, Quantization, type SamplingParameters } from "@hone/rl";

const OUTCOMES: Readonly<Record<Outcome, WireOutcome>> = {
  completed: WireOutcome.COMPLETED,
  truncated: WireOutcome.TRUNCATED,
  agent_failed: WireOutcome.AGENT_FAILED,
  timed_out: WireOutcome.TIMED_OUT,
  infra_failed: WireOutcome.INFRA_FAILED,
  cancelled: WireOutcome.CANCELLED,
  stale: WireOutcome.STALE,
};
const BY_NUMBER = new Map(Object.entries(OUTCOMES).map(([word, number]) => [number, word as Outcome]));
const SPLITS: ReadonlySet<string> = new Set(Object.values(Split));

export function outcomeToWire(outcome: Outcome): WireOutcome {
  return OUTCOMES[outcome];
}

/** @throws {TerminalError} when this version does not know the number. */
export function outcomeFromWire(outcome: WireOutcome): Outcome {
  const word = BY_NUMBER.get(outcome);
  if (word === undefined) {
    throw new TerminalError(
      "UNKNOWN_OUTCOME",
      `The outcome ${outcome} is not known; the message comes from another version of Hone`,
    );
  }
  return word;
}

const ON_NEW_VERSION: Readonly<Record<OnNewVersion, WireOnNewVersion>> = {
  recompute: WireOnNewVersion.RECOMPUTE,
  keep: WireOnNewVersion.KEEP,
  finish: WireOnNewVersion.FINISH,
};

export function onNewVersionToWire(choice: OnNewVersion): WireOnNewVersion {
  return ON_NEW_VERSION[choice];
}

/** What a message does not say, or says in a way that this version does not know, is recompute. */
export function onNewVersionFromWire(choice: WireOnNewVersion): OnNewVersion {
  const known = Object.values(OnNewVersion).find((word) => ON_NEW_VERSION[word] === choice);
  return known ?? OnNewVersion.recompute;
}

const QUANTIZATIONS: Readonly<Record<Quantization, WireQuantization>> = {
  none: WireQuantization.UNSPECIFIED,
  int8: WireQuantization.INT8,
};

export function quantizationToWire(quantization: Quantization): WireQuantization {
  return QUANTIZATIONS[quantization];
}

/** @returns undefined for a number that this version does not know. */
export function quantizationFromWire(quantization: WireQuantization): Quantization | undefined {
  return Object.values(Quantization).find((word) => QUANTIZATIONS[word] === quantization);
}

export function slotToWire(slot: Slot): WireSlot {
  return create(SlotSchema, slot);
}

/** @throws {TerminalError} when the slot is missing or its split is unknown. */
export function slotFromWire(slot: WireSlot | undefined): Slot {
  if (slot === undefined || !SPLITS.has(slot.split)) {
    throw new TerminalError(
      "UNKNOWN_SLOT",
      `The slot of a message has the split ${slot?.split}; it must be one of ${[...SPLITS].join(", ")}`,
    );
  }
  return { split: slot.split as Split, step: slot.step, task: slot.task, index: slot.index };
}

/** The other way needs no words: the names are the same. */
export function samplingFromWire(sampling: Sampling): Required<SamplingParameters> {
  // Callers that do not know an optional parameter send nothing, which arrives as 0.
  return mapParameters(({ isOptional, default: value }, name) =>
    isOptional === true && sampling[name] === 0 ? value : sampling[name],
  );
}
