/**
 * Reports the state of this replica in one key of REPLICAS per loaded model, at intervals and on change.
 *
 * Reports are sent one after the other. If several become due while one is being sent, only one more is sent.
 */

import { create } from "@bufbuild/protobuf";
import { type Bucket, BucketName, type Bus, openBucket } from "@hone/messaging";
import { type ReplicaState, ReplicaStateSchema } from "@hone/proto-gen/policy";
import type { Logger } from "@hone/telemetry";
import type { BusyTime } from "../domain/busy-clock.ts";
import type { InferenceEngine } from "../domain/inference-engine.ts";
import type { PolicyKeeper } from "../domain/policy-keeper.ts";

export interface ReportReplicaOptions {
  readonly bus: Bus;
  readonly engine: InferenceEngine;
  /** For how long the engine has had something to generate. */
  readonly busyTime: () => BusyTime;
  readonly keeper: PolicyKeeper;
  readonly replica: string;
  readonly everyMs: number;
  readonly logger: Logger;
}

export interface ReplicaReporter {
  /** Reports soon, as something has changed. */
  report(): void;
  /** Removes the entries, so that this replica gets no more requests, and stops reporting. */
  withdraw(): Promise<void>;
}

export async function reportReplica(options: ReportReplicaOptions): Promise<ReplicaReporter> {
  const { bus, engine, busyTime, keeper, replica, everyMs, logger } = options;
  const bucket: Bucket<ReplicaState> = await openBucket(bus, BucketName.replicas, ReplicaStateSchema);
  const keyOf = (model: string) => `${model}.${replica}`;
  let reported = new Set<string>();
  let isWanted = false;
  let isWithdrawn = false;
  let sending: Promise<void> | undefined;

  function report(): void {
    isWanted = true;
    sending ??= send();
  }

  async function send(): Promise<void> {
    while (isWanted && !isWithdrawn) {
      isWanted = false;
      try {
        await sendAll();
      } catch (error) {
        logger.warn("this replica's state cannot be reported", { error });
      }
    }
    sending = undefined;
  }

  async function sendAll(): Promise<void> {
    const { maxSequences, models } = engine.capacity();
    const { upMs, busyMs } = busyTime();
    const gone = [...reported].filter((model) => !models.some((loaded) => loaded.model === model));
    await Promise.all([
      ...gone.map((model) => bucket.delete(keyOf(model))),
      ...models.map(({ model, versions, running, waiting }) => {
        const loading = keeper.loading(model);
        const state = create(ReplicaStateSchema, {
          replica,
          model,
          versions: [...versions],
          capacity: maxSequences,
          inFlight: running,
          queued: waiting,
          activity: loading === undefined ? "" : `loading version ${loading.version}`,
          upMs: BigInt(Math.round(upMs)),
          busyMs: BigInt(Math.round(busyMs)),
        });
        return bucket.put(keyOf(model), state);
      }),
    ]);
    reported = new Set(models.map(({ model }) => model));
  }

  const timer = setInterval(report, everyMs);
  report();
  return {
    report,
    async withdraw() {
      if (isWithdrawn) return;
      isWithdrawn = true;
      clearInterval(timer);
      await sending;
      await Promise.all([...reported].map((model) => bucket.delete(keyOf(model))));
    },
  };
}
