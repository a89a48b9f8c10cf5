/**
 * Tokenizers of the runs. Runs whose files are the same share one: each run has its own copy of them, and a tokenizer with
 * its cache takes megabytes.
 */

import path from "node:path";
import { ChatRenderer, loadTokenizer } from "@hone/tokenizer";
import { UnusableJobError } from "./errors.ts";
import type { RolloutJob } from "./rollout-job.ts";

/** Tokenizers kept; a service sees a few models at a time. The least recently used leaves first. */
export const MAX_TOKENIZERS = 8;

export class Tokenizers {
  readonly #stateFolder: string;
  /** By digest, the least recently used first. */
  readonly #loading = new Map<string, Promise<ChatRenderer>>();

  /** @param stateFolder jobs name their tokenizer's folder below it. */
  constructor(stateFolder: string) {
    this.#stateFolder = stateFolder;
  }

  /**
   * The renderer of a job's tokenizer.
   * @throws {TokenizerLoadError | ChatTemplateError | UnusableJobError} when it cannot be loaded or is another one.
   */
  rendererOf(job: Pick<RolloutJob, "tokenizerPath" | "tokenizerDigest">): Promise<ChatRenderer> {
    const { tokenizerDigest: digest } = job;
    const known = this.#loading.get(digest);
    if (known !== undefined) {
      // Moved to the end: a map keeps the order of insertion.
      this.#loading.delete(digest);
      this.#loading.set(digest, known);
      return known;
    }
    const loading = this.#load(job);
    this.#loading.set(digest, loading);
    const [oldest] = this.#loading.keys();
    if (this.#loading.size > MAX_TOKENIZERS) this.#loading.delete(oldest!);
    // A failure is not kept: the folder may be there the next time, or another run's is.
    loading.catch(() => {
      if (this.#loading.get(digest) === loading) this.#loading.delete(digest);
    });
    return loading;
  }

  async #load(job: Pick<RolloutJob, "tokenizerPath" | "tokenizerDigest">): Promise<ChatRenderer> {
    const folder = path.resolve(this.#stateFolder, job.tokenizerPath);
    if (path.relative(this.#stateFolder, folder).startsWith("..")) {
      throw new UnusableJobError("its tokenizer must lie below the state folder", job.tokenizerPath);
    }
    const tokenizer = await loadTokenizer(folder);
    if (tokenizer.digest !== job.tokenizerDigest) {
      throw new UnusableJobError(
        `its tokenizer must have the digest ${job.tokenizerDigest} that the run was started with`,
        tokenizer.digest,
      );
    }
    return new ChatRenderer(tokenizer);
  }
}
