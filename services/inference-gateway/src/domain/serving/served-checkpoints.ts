/**
 * The checkpoints that the operator names: they are found or fetched, checked, and given to the keeper, which loads them.
 *
 * Their names may hold any character, so the engine has other names for them, which no run can have.
 */

import path from "node:path";
import { type BaseReference, digestOfMerged, findBaseFolder, inspectMerged } from "@hone/checkpoint";
import { describeError, retry } from "@hone/core";
import type { Quantization } from "@hone/rl";
import { ModelFailedError, ModelLoadingError } from "../errors.ts";
import type { PolicyChange, PolicyKeeper } from "../policy-keeper.ts";

/** A checkpoint; `id` is the name that clients use. */
export interface WantedCheckpoint {
  readonly id: string;
  /** Absolute folder, or an id of the hub. */
  readonly place: string;
}

export interface FindCheckpointOptions {
  readonly signal: AbortSignal;
  readonly onProgress: (doneBytes: number, totalBytes: number) => void;
}

/** Finds the folder of a checkpoint, and fetches it first if necessary. Throws a RetryableError when the hub does not answer. */
export type FindCheckpoint = (place: string, options: FindCheckpointOptions) => Promise<string>;

export interface ServedCheckpointsOptions {
  readonly wanted: readonly WantedCheckpoint[];
  /** How their products are computed. @default none: as the engine computes by default */
  readonly quantization?: Quantization;
  readonly find: FindCheckpoint;
  readonly keeper: Pick<PolicyKeeper, "want">;
  /** Called when a checkpoint cannot be served, and before each wait for the hub. */
  readonly onTrouble: (id: string, error: unknown) => void;
}

type State =
  | { readonly kind: "loading"; readonly progress: string }
  | { readonly kind: "failed"; readonly error: unknown };

const MIN_RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;
const MEGABYTE = 1e6;

export class ServedCheckpoints {
  readonly #options: ServedCheckpointsOptions;
  /** By id. */
  readonly #states = new Map<string, State>();
  /** By the engine's name. */
  readonly #ids: ReadonlyMap<string, string>;

  constructor(options: ServedCheckpointsOptions) {
    this.#options = options;
    this.#ids = new Map(options.wanted.map(({ id }, index) => [`served_${index}`, id]));
  }

  /** The clients' name of a model of the engine; undefined for the policy of a run. */
  idOf(engineModel: string): string | undefined {
    return this.#ids.get(engineModel);
  }

  engineModelOf(id: string): string | undefined {
    for (const [engineModel, each] of this.#ids) if (each === id) return engineModel;
    return undefined;
  }

  /** @throws {ModelLoadingError | ModelFailedError} if it is one of these checkpoints and not loaded. */
  checkUsable(id: string): void {
    const state = this.#states.get(id);
    if (state === undefined) return;
    if (state.kind === "failed") throw new ModelFailedError(id, { cause: state.error });
    throw new ModelLoadingError(id, state.progress);
  }

  /** Finds all checkpoints and gives them to the keeper. Resolves when that is done or the signal aborts; never rejects. */
  async start(signal: AbortSignal): Promise<void> {
    await Promise.all(
      this.#options.wanted.map((wanted, index) => this.#want(wanted, `served_${index}`, signal)),
    );
  }

  /** Takes the keeper's reports about its loads. */
  note(change: PolicyChange): void {
    if (change.kind !== "failed" && change.kind !== "loaded" && change.kind !== "progress") return;
    const id = this.idOf(change.source.model);
    if (id === undefined) return;
    if (change.kind === "progress")
      this.#states.set(id, { kind: "loading", progress: change.progress.stage });
    else if (change.kind === "loaded") this.#states.delete(id);
    else this.#states.set(id, { kind: "failed", error: change.error });
  }

  async #want({ id, place }: WantedCheckpoint, model: string, signal: AbortSignal): Promise<void> {
    const { find, keeper, quantization, onTrouble } = this.#options;
    const setProgress = (progress: string) => this.#states.set(id, { kind: "loading", progress });
    setProgress("its files are being looked for");
    const onProgress = (done: number, total: number) =>
      setProgress(`fetched ${Math.round(done / MEGABYTE)} of ${Math.round(total / MEGABYTE)} MB`);
    try {
      const folder = await retry(() => find(place, { signal, onProgress }), {
        signal,
        minDelayMs: MIN_RETRY_MS,
        maxDelayMs: MAX_RETRY_MS,
        onRetry: (error) => {
          setProgress(describeError(error));
          onTrouble(id, error);
        },
      });
      const findBase = (base: BaseReference) => find(placeText(base), { signal, onProgress });
      const base = await findBaseFolder(folder, findBase);
      setProgress("loading");
      await inspectMerged(folder, base === undefined ? undefined : async () => base);
      const digest = await digestOfMerged(folder);
      keeper.want({ model, version: 0, folder, digest, base, ...(quantization && { quantization }) });
    } catch (error) {
      if (signal.aborted) return;
      this.#states.set(id, { kind: "failed", error });
      onTrouble(id, error);
    }
  }
}

/** A place in the form of {@link WantedCheckpoint.place}. */
function placeText({ place, revision }: BaseReference): string {
  return revision === undefined || path.isAbsolute(place) ? place : `${place}@${revision}`;
}
