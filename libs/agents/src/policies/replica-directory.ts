/**
 * The replicas of every model, as the bucket REPLICAS and this process's own calls tell of them.
 *
 * D1: an entry is aged by this process's clock: one that was not heard of for the bucket's time to live is gone.
 * D2: a replica that did not answer is set aside until it says something new, or for a short while.
 * D3: load is what a replica reported or what this process has open with it, whichever is more.
 * D4: an entry under another name than its own, or one that no subject can name, is none: calls could not reach it.
 */

import { isSubjectToken } from "@hone/messaging";
import type { ReplicaState } from "@hone/proto-gen/policy";
import type { Candidate } from "./rendezvous.ts";

/** One change of the bucket. */
export interface ReplicaChange {
  /** `<model>.<replica>` */
  readonly key: string;
  /** Undefined: the replica left, or its entry expired. */
  readonly value: ReplicaState | undefined;
}

interface Entry {
  readonly state: ReplicaState;
  readonly heardAt: number;
}

/** How long a replica that failed to answer is left alone (D2); a restarted one reports itself sooner. */
const SET_ASIDE_MS = 1_000;

export class ReplicaDirectory {
  readonly #maxAgeMs: number;
  readonly #now: () => number;
  readonly #entries = new Map<string, Entry>();
  readonly #asideUntil = new Map<string, number>();
  readonly #open = new Map<string, number>();
  #onChange = Promise.withResolvers<void>();

  /** @param maxAgeMs entries older than this are gone (D1). */
  constructor(maxAgeMs: number, now: () => number = () => performance.now()) {
    this.#maxAgeMs = maxAgeMs;
    this.#now = now;
  }

  /** Takes up what the bucket says. */
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

  /** Replicas of a model that have loaded a version in [lowest, highest] and are not set aside. */
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

  /** Why a model has no serving replica, in words. */
  describe(model: string, lowestVersion: number, highestVersion: number): string {
    const states = [...this.#entries.values()]
      .map(({ state }) => state)
      .filter((state) => state.model === model);
    if (states.length === 0) return `none is known for ${model}`;
    const wanted =
      lowestVersion === highestVersion ? `${lowestVersion}` : `${lowestVersion} to ${highestVersion}`;
    const said = states.map(
      ({ replica, versions, activity }) =>
        `${replica} has ${versions.join(", ") || "none"}${activity === "" ? "" : ` and is ${activity}`}`,
    );
    return `version ${wanted} is wanted: ${said.join("; ")}`;
  }

  /** Leaves a replica alone for a while (D2). */
  setAside(model: string, replica: string): void {
    this.#asideUntil.set(`${model}.${replica}`, this.#now() + SET_ASIDE_MS);
  }

  /** Counts a call that is open with a replica (D3). @returns ends it. */
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
