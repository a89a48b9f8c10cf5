/** The bucket RUN_STATE: one key per run, written by compare-and-set; the owner with the higher epoch wins. */

import { create } from "@bufbuild/protobuf";
import {
  type Bucket,
  quantizationToWire,
  RevisionConflictError,
  UndecodableMessageError,
} from "@hone/messaging";
import { PolicyStateSchema, type RunState, RunStateSchema, RunPhase as WirePhase } from "@hone/proto-gen/run";
import type { RunPhase, RunStateBoard, RunStatus } from "../domain/report/run-status.ts";
import { troublesToWire } from "./troubles-to-wire.ts";

/** Tries of one publication; each failure means that another writer came in between. */
const MAX_CONFLICTS = 10;

const PHASES: Readonly<Record<RunPhase, WirePhase>> = {
  waiting: WirePhase.WAITING,
  warm_start: WirePhase.WARM_START,
  rollout: WirePhase.ROLLOUT,
  train: WirePhase.TRAIN,
  commit: WirePhase.COMMIT,
  evaluate: WirePhase.EVALUATE,
  paused: WirePhase.PAUSED,
  completed: WirePhase.COMPLETED,
  failed: WirePhase.FAILED,
  cancelled: WirePhase.CANCELLED,
};

export function phaseToWire(phase: RunPhase): WirePhase {
  return PHASES[phase];
}

export class RunStateBucket implements RunStateBoard {
  readonly #bucket: Bucket<RunState>;
  /** The revisions that this process wrote last; an outdated one costs one more read. */
  readonly #revisions = new Map<string, number>();

  constructor(bucket: Bucket<RunState>) {
    this.#bucket = bucket;
  }

  async publish(status: RunStatus): Promise<boolean> {
    const { runId } = status;
    const value = encodeStatus(status);
    for (let conflicts = 0; ; conflicts++) {
      let revision = this.#revisions.get(runId);
      if (revision === undefined) {
        const current = await this.#current(runId);
        if (current.epoch !== undefined && current.epoch > value.ownerEpoch) return false;
        revision = current.revision;
      }
      try {
        this.#revisions.set(runId, await this.#bucket.compareAndSet(runId, value, revision));
        return true;
      } catch (error) {
        this.#revisions.delete(runId);
        if (!(error instanceof RevisionConflictError) || conflicts >= MAX_CONFLICTS) throw error;
      }
    }
  }

  /** The published state of a run; undefined when there is none, or when it cannot be decoded. */
  async read(runId: string): Promise<RunState | undefined> {
    try {
      return (await this.#bucket.get(runId))?.value;
    } catch (error) {
      if (error instanceof UndecodableMessageError) return undefined;
      throw error;
    }
  }

  async remove(runId: string): Promise<void> {
    this.#revisions.delete(runId);
    if ((await this.#bucket.revisionOf(runId)) > 0) await this.#bucket.delete(runId);
  }

  /** The stored revision and epoch; a state that cannot be decoded has no owner and is overwritten. */
  async #current(runId: string): Promise<{ revision: number; epoch: bigint | undefined }> {
    try {
      const current = await this.#bucket.get(runId);
      return { revision: current?.revision ?? 0, epoch: current?.value.ownerEpoch };
    } catch (error) {
      if (!(error instanceof UndecodableMessageError)) throw error;
      return { revision: await this.#bucket.revisionOf(runId), epoch: undefined };
    }
  }
}

export function encodeStatus(status: RunStatus): RunState {
  return create(RunStateSchema, {
    runId: status.runId,
    phase: PHASES[status.phase],
    version: status.version,
    location: status.location,
    digest: status.digest,
    ownerEpoch: BigInt(status.epoch),
    totalSteps: status.totalSteps,
    waitingFor: status.waitingFor,
    waitingOwner: status.waitingOwner,
    waitingSinceMs: BigInt(status.waitingSinceMs),
    configJson: status.configJson,
    oldestVersion: status.oldestVersion,
    tokenizerDigest: status.tokenizerDigest,
    resumption: status.resumption,
    quantization: quantizationToWire(status.quantization),
    policies: (status.policies ?? []).map((policy) => create(PolicyStateSchema, policy)),
    endReason: status.endReason ?? "",
    publishedIn: status.publishedIn ?? "",
    ...(status.troubles !== undefined && { troubles: troublesToWire(status.troubles) }),
  });
}
