/**
 * The replicas of every model, known from the bucket REPLICAS and from this process's own calls.
 *
 * D1: the age of an entry is measured by this process's clock. An entry that was not updated within the bucket's time to live
 *     is dropped.
 * D2: a replica that did not answer is skipped until it reports something new, or for a short while.
 * D3: the load of a replica is what it reported or the number of calls that this process has open with it, whichever is more.
 * D4: an entry is ignored if its key differs from its content, or if its name cannot be part of a subject: calls could not
 *     reach such a replica.
 */

import { isSubjectToken } from "@hone/messaging";
import type { ReplicaState } from "@hone/proto-gen/policy";
import type { Candidate } from "./rendezvous.ts";

/** One change of the bucket. */
export interface ReplicaChange {
  /** `<model>.<replica>` */
  readonly key: string;
  /** Undefined = the replica stopped, or its entry expired. */
  readonly value: ReplicaState | undefined;
}

interface Entry {
  readonly state: ReplicaState;
  readonly heardAt: number;
}

/** How long a replica that failed to answer is skipped (D2); a restarted one reports itself sooner. */
const SET_ASIDE_MS = 1_000;

export class ReplicaDirectory {
  readonly #maxAgeMs: number;
  readonly #now: () => number;
  readonly #entries = new Map<string, Entry>();
  readonly #asideUntil = new Map<string, number>();
  readonly #open = new Map<string, number>();
  #onChange = Promise.withResolvers<void>();

  /** @param maxAgeMs entries older than this are dropped (D1). */
  constructor(maxAgeMs: number, now: () => number = () => performance.now()) {
    this.#maxAgeMs = maxAgeMs;
    this.#now = now;
  }

  /** Applies a change of the bucket. */
  apply({ key, value }: ReplicaChange): void {
    // D4
    if (value === undefined || key !== `${value.model}.${value.replica}` || !isSubjectToken(value.replica)) {
      this.#entries.delete(key);
    } else this.#entries.set(key, { state: value, heardAt: this.#now() });
    this.#asideUntil.delete(key);
    const changed = this.#onChange;
    this.#onChange = Promise.withResolvers<void>();
    changed.resolve();
  }

  /** Resolves with the next change. */
  changed(): Promise<void> {
    return this.#onChange.promise;
  }

  /** The replicas of a model that have loaded a version in [lowest, highest] and are not set aside. */
  serving(model: string, lowestVersion: number, highestVersion: number): Candidate[] {
    const found: Candidate[] = [];
    for (const [key, { state, heardAt }] of this.#entries) {
      if (state.model !== model) continue;
      if (this.#now() - heardAt > this.#maxAgeMs) {
        this.#entries.delete(key);
        continue;
      }
      if ((this.#asideUntil.get(key) ?? 0) > this.#now()) continue;
      if (!state.versions.some((version) => version >= lowestVersion && version <= highestVersion)) continue;
      found.push({
        name: state.replica,
        load: Math.max(state.inFlight + state.queued, this.#open.get(key) ?? 0),
      });
    }
    return found;
  }

  /** Explains why no replica can serve a model. */
  describe(model: string, lowestVersion: number, highestVersion: number): string {
    const states = [...this.#entries.values()]
      .map(({ state }) => state)
      .filter((state) => state.model === model);
    if (states.length === 0) return `none is known for ${model}`;
    const wanted =
      lowestVersion === highestVersion ? `${lowestVersion}` : `${lowestVersion} to ${highestVersion}`;
    const loaded = states.map(
      ({ replica, versions, activity }) =>
        `${replica} has ${versions.join(", ") || "none"}${activity === "" ? "" : ` and is ${activity}`}`,
    );
    return `version ${wanted} is wanted: ${loaded.join("; ")}`;
  }

  /** Skips a replica for a while (D2). */
  setAside(model: string, replica: string): void {
    this.#asideUntil.set(`${model}.${replica}`, this.#now() + SET_ASIDE_MS);
  }

  /** Counts a call that is open with a replica (D3). @returns a function that ends the count. */
  open(model: string, replica: string): () => void {
    const key = `${model}.${replica}`;
    this.#open.set(key, (this.#open.get(key) ?? 0) + 1);
    return () => {
      const left = (this.#open.get(key) ?? 1) - 1;
      if (left === 0) this.#open.delete(key);
      else this.#open.set(key, left);
    };
  }
}
