/**
 * The tokenizers of runs. Each run has its own copy of the files, but runs whose files are the same share one tokenizer, as a
 * tokenizer with its cache takes megabytes.
 */

import path from "node:path";
import { ChatRenderer, loadTokenizer } from "@hone/tokenizer";
import { UnusableJobError } from "./errors.ts";
import type { RolloutJob } from "./rollout-job.ts";

/** Most tokenizers in memory; a service serves only a few models at a time. The least recently used is dropped first. */
export const MAX_TOKENIZERS = 8;

export class Tokenizers {
  readonly #stateFolder: string;
  /** By digest, the least recently used first. */
  readonly #loading = new Map<string, Promise<ChatRenderer>>();

  /** @param stateFolder the folder below which jobs name their tokenizer's folder. */
  constructor(stateFolder: string) {
    this.#stateFolder = stateFolder;
  }

  /**
   * Gives the renderer of a job's tokenizer.
   * @throws {TokenizerLoadError | ChatTemplateError | UnusableJobError} when it cannot be loaded or has another digest.
   */
  rendererOf(job: Pick<RolloutJob, "tokenizerPath" | "tokenizerDigest">): Promise<ChatRenderer> {
    const { tokenizerDigest: digest } = job;
    const known = this.#loading.get(digest);
    if (known !== undefined) {
      // Moved to the end, as a map keeps the order of insertion.
      this.#loading.delete(digest);
      this.#loading.set(digest, known);
      return known;
    }
    const loading = this.#load(job);
    this.#loading.set(digest, loading);
    const [oldest] = this.#loading.keys();
    if (this.#loading.size > MAX_TOKENIZERS) this.#loading.delete(oldest!);
    // A failure is forgotten: the folder may exist the next time, or another run may have the same files.
    loading.catch(() => {
      if (this.#loading.get(digest) === loading) this.#loading.delete(digest);
    });
    return loading;
  }

  async #load(job: Pick<RolloutJob, "tokenizerPath" | "tokenizerDigest">): Promise<ChatRenderer> {
    const folder = path.resolve(this.#stateFolder, job.tokenizerPath);
    if (path.relative(this.#stateFolder, folder).startsWith("..")) {
      throw new UnusableJobError(
        `its tokenizer's folder "${job.tokenizerPath}" is not below the state folder`,
      );
    }
    const tokenizer = await loadTokenizer(folder);
    if (tokenizer.digest !== job.tokenizerDigest) {
      throw new UnusableJobError(
        `its tokenizer has the digest ${tokenizer.digest}, but the run was started with ${job.tokenizerDigest}`,
      );
    }
    return new ChatRenderer(tokenizer);
  }
}
