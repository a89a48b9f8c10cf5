/**
 * The run that a replica with one model at a time serves.
 *
 * C1: a claim is a key of REPLICAS, `<run>.=<n>`: the first free n, taken by compare-and-set. Two replicas that want the
 *     same place settle it there; who comes second looks again, and takes a run that has fewer.
 * C2: a claim lives as long as its replica says so; that of a dead one expires with the bucket's time to live.
 * C3: a replica keeps its run until the run ends, and is free for another one then.
 *
 * No replica has a name that begins with "=", so that nobody takes a claim for one.
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
import type { FollowRunsOptions } from "./follow-runs.ts";
import { hasEnded, policySourceOf } from "./policy-source.ts";

export interface ClaimRunOptions extends FollowRunsOptions {
  readonly replica: string;
  /** Time between two looks at one's own claim. @default a third of the bucket's time to live */
  readonly renewEveryMs?: number;
}

interface Claim {
  readonly run: string;
  readonly key: string;
  readonly revision: number;
}

/** Where a replica may claim a run: how many have claimed it before. */
interface Place extends Claim {
  readonly place: number;
  readonly isOwn: boolean;
}

/** Follows until the signal aborts, then gives its claim back. */
export async function claimRun(options: ClaimRunOptions, signal: AbortSignal): Promise<void> {
  const { bus, logger, keeper, stateDir, renewEveryMs = REPLICA_TTL_MS / 3 } = options;
  const runs = await openBucket(bus, BucketName.runState, RunStateSchema);
  const claims = new Claims(await openBucket(bus, BucketName.replicas, ReplicaStateSchema), options.replica);
  const active = new Map<string, RunState>();
  let claim: Claim | undefined;
  let turn: Promise<void> = Promise.resolve();

  /** One after the other: changes of runs, and renewals. */
  const inTurn = (what: string, work: () => Promise<void>): Promise<void> => {
    turn = turn.then(work).catch((error: unknown) => logger.warn(`cannot ${what}, trying again`, { error }));
    return turn;
  };
  const follow = async (): Promise<void> => {
    if (claim !== undefined && !active.has(claim.run)) {
      const { run } = claim;
      keeper.drop(run);
      await claims.release(claim);
      claim = undefined;
      logger.info("the run has ended: this replica is free", { run });
    }
    if (claim === undefined) {
      claim = await claims.take([...active.keys()]);
      if (claim === undefined) return;
      logger.info("this replica serves a run", { run: claim.run });
    }
    const source = policySourceOf(claim.run, active.get(claim.run)!, stateDir, logger);
    if (source !== undefined) keeper.want(source);
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
  // A run without weights has nothing to be served yet.
  const note = (key: string, value: RunState | undefined) => {
    if (value === undefined || hasEnded(value)) active.delete(key);
    else if (value.location !== "") active.set(key, value);
  };
  // All of them before the first claim: a watch tells of one after the other.
  await inTurn("claim a run", async () => {
    for (const { key, value } of await runs.entries()) note(key, value);
    await follow();
  });
  for await (const { key, value } of runs.watch(signal, onError)) {
    note(key, value);
    await inTurn("claim a run", follow);
  }
  await renewing;
  await inTurn("give the claim of a run back", async () => {
    if (claim !== undefined) await claims.release(claim);
  });
}

/** The claims of all replicas, as the bucket has them. */
class Claims {
  readonly #bucket: Bucket<ReplicaState>;
  readonly #replica: string;

  constructor(bucket: Bucket<ReplicaState>, replica: string) {
    this.#bucket = bucket;
    this.#replica = replica;
  }

  /** C1 @returns undefined when there is no run to claim. */
  async take(runs: readonly string[]): Promise<Claim | undefined> {
    while (runs.length > 0) {
      const places = await Promise.all(runs.map((run) => this.#placeIn(run)));
      // One that this replica had before it was started again is its own.
      const [{ run, key, revision }] = places.sort(
        (a, b) => Number(b.isOwn) - Number(a.isOwn) || a.place - b.place || (a.run < b.run ? -1 : 1),
      ) as [Place];
      try {
        return { run, key, revision: await this.#bucket.compareAndSet(key, this.#state(run), revision) };
      } catch (error) {
        if (!(error instanceof RevisionConflictError)) throw error;
      }
    }
    return undefined;
  }

  /** C2 @returns undefined where the claim is as it was. */
  async renew(claim: Claim): Promise<Claim | undefined> {
    try {
      const { run, key } = claim;
      const revision = await this.#bucket.compareAndSet(key, this.#state(run), claim.revision);
      return { run, key, revision };
    } catch (error) {
      if (!(error instanceof RevisionConflictError)) throw error;
      // It expired while the bus was away.
      return this.take([claim.run]);
    }
  }

  async release({ key }: Claim): Promise<void> {
    await this.#bucket.delete(key);
  }

  /** The place that this replica has in a run, or else the first that is free. */
  async #placeIn(run: string): Promise<Place> {
    for (let place = 0; ; place++) {
      const key = `${run}.=${place}`;
      // What nobody can read is no claim.
      const entry = await this.#bucket.get(key).catch(async (error: unknown) => {
        if (!(error instanceof UndecodableMessageError)) throw error;
        return { value: undefined, revision: await this.#bucket.revisionOf(key) };
      });
      const isOwn = entry?.value?.replica === this.#replica;
      if (entry?.value === undefined || isOwn)
        return { run, key, place, isOwn, revision: entry?.revision ?? 0 };
    }
  }

  #state(run: string): ReplicaState {
    return create(ReplicaStateSchema, { replica: this.#replica, model: run, activity: "claims this run" });
  }
}
