/** The events of a run that are published for everybody who follows it. */

import { problemMessage } from "@hone/config";
import type { GatheredTroubles, RunPhase } from "./run-status.ts";

/** One mistake in a run file. */
export interface Problem {
  /** Path of the key, such as `agent.name`. */
  readonly key: string;
  /** The value found there, as JSON. */
  readonly valueJson: string;
  readonly allowed: string;
  /** The whole sentence, to be shown to people. */
  readonly message: string;
}

/** @param value what was found under the key; undefined = nothing. */
export function problemOf(key: string, value: unknown, allowed: string): Problem {
  return {
    key,
    valueJson: JSON.stringify(value ?? null),
    allowed,
    message: problemMessage(key, value, allowed),
  };
}

export type RunEvent =
  | { readonly kind: "accepted"; readonly requestSequence: number; readonly configJson: string }
  | { readonly kind: "phase"; readonly phase: RunPhase; readonly step: number; readonly waitingFor: string }
  | {
      readonly kind: "progress";
      readonly step: number;
      readonly rolloutsDone: number;
      readonly rolloutsTotal: number;
    }
  | {
      readonly kind: "warm-start";
      readonly rolloutsDone: number;
      readonly rolloutsTotal: number;
      readonly updatesDone: number;
      readonly updatesTotal: number;
      readonly loss: number;
    }
  | {
      readonly kind: "step";
      readonly step: number;
      readonly totalSteps: number;
      readonly version: number;
      readonly metrics: Readonly<Record<string, number>>;
      readonly troubles?: GatheredTroubles | undefined;
    }
  | {
      readonly kind: "evaluated";
      readonly version: number;
      readonly mode: EvaluationMode;
      readonly episodes: number;
      readonly metrics: Readonly<Record<string, number>>;
      readonly troubles?: GatheredTroubles | undefined;
    }
  | {
      readonly kind: "ended";
      readonly phase: RunPhase;
      readonly reason: string;
      /** Folder of the last checkpoint, relative to the state folder; empty when there is none. */
      readonly checkpoint: string;
      /** How many times the run had been resumed after a failure. */
      readonly resumption: number;
    }
  | { readonly kind: "resumed"; readonly resumption: number };

/** How an evaluation samples. */
export const EvaluationMode = {
  /** With the run's own sampling parameters. */
  sampled: "sampled",
  /** Always the most likely token. */
  greedy: "greedy",
} as const;
export type EvaluationMode = (typeof EvaluationMode)[keyof typeof EvaluationMode];

export interface RunEvents {
  /** @param messageId the stream stores one event of an id, however often it is sent. */
  publish(runId: string, event: RunEvent, messageId?: string): Promise<void>;
}
