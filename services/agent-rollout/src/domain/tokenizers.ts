/** Tokenizers of the runs, each loaded once. */

import path from "node:path";
import { ChatRenderer, loadTokenizer } from "@hone/tokenizer";
import { UnusableJobError } from "./errors.ts";
import type { RolloutJob } from "./rollout-job.ts";

/** Tokenizers kept; a service sees a few runs at a time. */
const MAX_TOKENIZERS = 32;

export class Tokenizers {
  readonly #stateFolder: string;
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
    const key = `${job.tokenizerDigest}\u0000${job.tokenizerPath}`;
    const known = this.#loading.get(key);
    if (known !== undefined) return known;
    if (this.#loading.size >= MAX_TOKENIZERS) this.#loading.clear();
    const loading = this.#load(job);
    this.#loading.set(key, loading);
    // A failure is not kept: the folder may be there the next time.
    loading.catch(() => this.#loading.delete(key));
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
