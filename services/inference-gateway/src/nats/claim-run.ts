/**
 * Chooses the model that a replica serves if it can have only one at a time: a run's own policy, or a further one of it.
 *
 * C1: a claim is a key of REPLICAS, `<model>.=<n>`, with the first n that is free, written by compare-and-set. If two replicas
 *     want the same key, one of them fails, and chooses again among the models with the fewest claims.
 * C2: a replica renews its claim; the claim of a replica that died expires with the bucket's time to live.
 * C3: a replica keeps its model until the run ends, and can then claim another one.
 *
 * No name of a replica begins with "=", so a claim cannot be mistaken for a replica's entry.
 */

import { create } from "@bufbuild/protobuf";
import { pause } from "@hone/core";
import {
  type Bucket,
  BucketName,
  openBucket,
  REPLICA_TTL_MS,
  RevisionConflictError,
  UndecodableMessageError,
} from "@hone/messaging";
import { type ReplicaState, ReplicaStateSchema } from "@hone/proto-gen/policy";
import { type RunState, RunStateSchema } from "@hone/proto-gen/run";
import type { PolicySource } from "../domain/inference-engine.ts";
import type { FollowRunsOptions } from "./follow-runs.ts";
import { hasEnded, policySourcesOf } from "./policy-source.ts";

export interface ClaimRunOptions extends FollowRunsOptions {
  readonly replica: string;
  /** Time between two renewals of the claim. @default a third of the bucket's time to live */
  readonly renewEveryMs?: number;
}

interface Claim {
  readonly model: string;
  readonly key: string;
  readonly revision: number;
}

/** A claim that a replica may make; `place` is its n, the number of claims of the model before it. */
interface Place extends Claim {
  readonly place: number;
  readonly isOwn: boolean;
}

/** Follows the runs until the signal aborts, and then releases its claim. */
export async function claimRun(options: ClaimRunOptions, signal: AbortSignal): Promise<void> {
  const { bus, logger, keeper, stateDir, renewEveryMs = REPLICA_TTL_MS / 3 } = options;
  const runs = await openBucket(bus, BucketName.runState, RunStateSchema);
  const claims = new Claims(await openBucket(bus, BucketName.replicas, ReplicaStateSchema), options.replica);
  /** The models of each active run. */
  const active = new Map<string, ReadonlyMap<string, PolicySource>>();
  const models = () => new Map([...active.values()].flatMap((ofRun) => [...ofRun]));
  let claim: Claim | undefined;
  let turn: Promise<void> = Promise.resolve();

  /** Handles changes of runs and renewals one after the other. */
  const inTurn = (what: string, work: () => Promise<void>): Promise<void> => {
    turn = turn.then(work).catch((error: unknown) => logger.warn(`cannot ${what}, trying again`, { error }));
    return turn;
  };
  const follow = async (): Promise<void> => {
    const served = models();
    if (claim !== undefined && !served.has(claim.model)) {
      const { model } = claim;
      keeper.drop(model);
      await claims.release(claim);
      claim = undefined;
      logger.info("the run has ended, and this replica is free", { model });
    }
    if (claim === undefined) {
      claim = await claims.take([...served.keys()]);
      if (claim === undefined) return;
      logger.info("this replica serves a model", { model: claim.model });
    }
    keeper.want(served.get(claim.model)!);
  };
  const renew = async (): Promise<void> => {
    if (claim !== undefined) claim = (await claims.renew(claim)) ?? claim;
    else await follow();
  };

  const renewing = (async () => {
    while (!signal.aborted) {
      await pause(renewEveryMs, signal);
      if (!signal.aborted) await inTurn("renew the claim of a run", renew);
    }
  })();
  const onError = (error: unknown) =>
    logger.warn("the state of the runs cannot be followed, trying again", { error });
  // A run without weights cannot be served yet.
  const note = (key: string, value: RunState | undefined) => {
    const sources =
      value === undefined || hasEnded(value) ? [] : policySourcesOf(key, value, stateDir, logger);
    if (sources.length > 0) active.set(key, new Map(sources.map((source) => [source.model, source])));
    else if (value === undefined || hasEnded(value)) active.delete(key);
  };
  // A watch reports one run after the other, but the first claim must consider all of them.
  await inTurn("claim a run", async () => {
    for (const { key, value } of await runs.entries()) note(key, value);
    await follow();
  });
  for await (const { key, value } of runs.watch(signal, onError)) {
    note(key, value);
    await inTurn("claim a run", follow);
  }
  await renewing;
  await inTurn("release the claim of a run", async () => {
    if (claim !== undefined) await claims.release(claim);
  });
}

/** The claims of all replicas in the bucket. */
class Claims {
  readonly #bucket: Bucket<ReplicaState>;
  readonly #replica: string;

  constructor(bucket: Bucket<ReplicaState>, replica: string) {
    this.#bucket = bucket;
    this.#replica = replica;
  }

  /** C1 @returns undefined when there is no model to claim. */
  async take(models: readonly string[]): Promise<Claim | undefined> {
    while (models.length > 0) {
      const places = await Promise.all(models.map((model) => this.#placeIn(model)));
      // A claim that this replica made before a restart is its own.
      const [{ model, key, revision }] = places.sort(
        (a, b) => Number(b.isOwn) - Number(a.isOwn) || a.place - b.place || (a.model < b.model ? -1 : 1),
      ) as [Place];
      try {
        return { model, key, revision: await this.#bucket.compareAndSet(key, this.#state(model), revision) };
      } catch (error) {
        if (!(error instanceof RevisionConflictError)) throw error;
      }
    }
    return undefined;
  }

  /** C2 @returns the new claim; undefined if this replica could claim no model. */
  async renew(claim: Claim): Promise<Claim | undefined> {
    try {
      const { model, key } = claim;
      const revision = await this.#bucket.compareAndSet(key, this.#state(model), claim.revision);
      return { model, key, revision };
    } catch (error) {
      if (!(error instanceof RevisionConflictError)) throw error;
      // The claim expired while the bus was not reachable.
      return this.take([claim.model]);
    }
  }

  async release({ key }: Claim): Promise<void> {
    await this.#bucket.delete(key);
  }

  /** This replica's own place in a model, or else the first free one. */
  async #placeIn(model: string): Promise<Place> {
    for (let place = 0; ; place++) {
      const key = `${model}.=${place}`;
      // A claim that cannot be decoded counts as free.
      const entry = await this.#bucket.get(key).catch(async (error: unknown) => {
        if (!(error instanceof UndecodableMessageError)) throw error;
        return { value: undefined, revision: await this.#bucket.revisionOf(key) };
      });
      const isOwn = entry?.value?.replica === this.#replica;
      if (entry?.value === undefined || isOwn)
        return { model, key, place, isOwn, revision: entry?.revision ?? 0 };
    }
  }

  #state(model: string): ReplicaState {
    return create(ReplicaStateSchema, { replica: this.#replica, model, activity: "claims this model" });
  }
}
