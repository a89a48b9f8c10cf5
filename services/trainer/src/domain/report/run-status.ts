/** The published state of a run: what it is doing now. */

import type { Quantization, RolloutTroubles } from "@hone/rl";
import type { WaitOwner } from "./wait.ts";

/** What a run is doing. */
export const RunPhase = {
  waiting: "waiting",
  warmStart: "warm_start",
  rollout: "rollout",
  train: "train",
  commit: "commit",
  evaluate: "evaluate",
  paused: "paused",
  completed: "completed",
  failed: "failed",
  cancelled: "cancelled",
} as const;
export type RunPhase = (typeof RunPhase)[keyof typeof RunPhase];

/** What went wrong in rollouts, and what they were made for. */
export interface GatheredTroubles extends RolloutTroubles {
  /** Such as "step 3". */
  readonly madeFor: string;
}

/** The weights of a further policy that replicas serve. */
export interface ServedPolicy {
  /** As generate requests name it. */
  readonly model: string;
  readonly version: number;
  /** Folder of its Hugging Face files, relative to the state folder. */
  readonly location: string;
  /** SHA-256 of its weights, hexadecimal. */
  readonly digest: string;
}

export interface RunStatus {
  readonly runId: string;
  readonly phase: RunPhase;
  /** The policy version that is served. */
  readonly version: number;
  /** Folder of its Hugging Face files, relative to the state folder; empty before version 0. */
  readonly location: string;
  /** SHA-256 of its model.safetensors, hexadecimal. */
  readonly digest: string;
  /** The run's further policies; absent = it has none, or none has weights yet. */
  readonly policies?: readonly ServedPolicy[];
  /** `traceparent` of the span in which that version was published; absent = none is recorded. */
  readonly publishedIn?: string | undefined;
  readonly epoch: number;
  readonly totalSteps: number;
  /** What the run waits for; empty = nothing. */
  readonly waitingFor: string;
  /** Who must act; empty = nothing is waited for. */
  readonly waitingOwner: WaitOwner | "";
  /** Unix milliseconds. */
  readonly waitingSinceMs: number;
  readonly configJson: string;
  /** Oldest version that jobs in flight may still need. */
  readonly oldestVersion: number;
  /** How many times the run was resumed after a failure. */
  readonly resumption: number;
  /** How engines compute the products of the served version. */
  readonly quantization: Quantization;
  /** Names the tokenizer files that the run file holds; empty for a pretrained model. */
  readonly tokenizerDigest: string;
  /** What went wrong in the rollouts that were gathered last; absent = nothing did. */
  readonly troubles?: GatheredTroubles | undefined;
  /** Why the run ended; absent while it has not, and where it completed. */
  readonly endReason?: string;
}

/** The part of a status that says that nothing is waited for. */
export const NO_WAIT = { waitingFor: "", waitingOwner: "", waitingSinceMs: 0 } as const;

/** The published state of a run. */
export interface RunStateBoard {
  /**
   * Moves the published state by compare-and-set.
   * @returns false when a higher epoch has written: this process owns the run no longer.
   */
  publish(status: RunStatus): Promise<boolean>;
}

/** What monitoring tells of a run's last step. */
export interface LastStep {
  /** Unix milliseconds. */
  readonly atMs: number;
  /** Mean |logprob when sampled - recomputed|; undefined = not known. */
  readonly mismatchMean: number | undefined;
}
