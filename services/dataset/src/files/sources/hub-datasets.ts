/**
 * Data sets of the Hugging Face hub, by their id.
 *
 * D1: there is one download for each revision and split. A request in the meantime gets its progress in an error, and is
 *     made again later.
 * D2: while the process runs, a download is used again and never repeated, so the rows of a run stay the same when a
 *     branch of the hub moves on.
 */

import { stat } from "node:fs/promises";
import path from "node:path";
import { DeadlineError, deadline, RetryableError } from "@hone/core";
import { type DatasetHub, HubRefusedError, isRepositoryId } from "@hone/hub";
import type { Logger } from "@hone/telemetry";
import { SourceError } from "../../errors.ts";
import { chooseFiles, type HuggingFaceFolder } from "./hugging-face-folder.ts";

export interface HubDatasetsOptions {
  /** HONE_FILES: a folder with the data set's name in it takes precedence over the hub. */
  readonly root: string;
  readonly hub: DatasetHub;
  /** Ends downloads. */
  readonly signal: AbortSignal;
  readonly logger: Logger;
  /** How long an answer waits for a download. @default 5_000 */
  readonly patienceMs?: number;
}

interface Download {
  readonly files: Promise<string[]>;
  doneBytes: number;
  totalBytes: number;
}

/** Shorter than the trainer waits for a batch. */
const DEFAULT_PATIENCE_MS = 5_000;

/** The data set is still being downloaded. */
class StillFetchingError extends RetryableError {
  constructor(name: string, { doneBytes, totalBytes }: Download) {
    const mib = (bytes: number) => Math.round(bytes / 2 ** 20);
    super(
      "STILL_FETCHING",
      `${name} is still being fetched: ${mib(doneBytes)} of ${mib(totalBytes)} MiB are here`,
    );
  }
}

export class HubDatasets {
  readonly #options: HubDatasetsOptions;
  readonly #downloads = new Map<string, Download>();

  constructor(options: HubDatasetsOptions) {
    this.#options = options;
  }

  /** Whether a path is the id of a data set of the hub; false where the project has a folder of that name. */
  async isHubId(named: string): Promise<boolean> {
    if (!named.includes("/") || !isRepositoryId(named)) return false;
    return stat(path.join(this.#options.root, named)).then(
      () => false,
      () => true,
    );
  }

  /**
   * Fetches the split's files. @returns their paths on this machine.
   * @throws {SourceError} when there is no such data set, or no such split in it.
   * @throws {RetryableError} when the hub does not answer, or the download takes longer than an answer may wait.
   */
  async filesOf(source: HuggingFaceFolder & { readonly revision: string }): Promise<string[]> {
    const { patienceMs = DEFAULT_PATIENCE_MS } = this.#options;
    const { path: name, revision, split, subset } = source;
    const key = JSON.stringify([name, revision, split, subset ?? null]);
    let download = this.#downloads.get(key);
    if (download === undefined) {
      download = this.#start(source);
      this.#downloads.set(key, download);
      download.files.catch(() => this.#downloads.delete(key));
    }
    const { files } = download;
    try {
      return await deadline(`the files of ${name}`, patienceMs, () => files);
    } catch (error) {
      if (error instanceof DeadlineError) throw new StillFetchingError(name, download);
      if (!(error instanceof HubRefusedError)) throw error;
      throw new SourceError(
        error.message,
        { path: "path", allowed: "a data set of the hub" },
        { cause: error.cause },
      );
    }
  }

  #start(source: HuggingFaceFolder & { readonly revision: string }): Download {
    const { hub, signal, logger } = this.#options;
    const { path: name, revision } = source;
    let chosen: string[] = [];
    const choose = (paths: readonly string[]) => {
      chosen = chooseFiles(paths, source);
      return chosen;
    };
    const progress = { doneBytes: 0, totalBytes: 0 };
    const files = hub
      .folderOf(name, revision, choose, {
        signal,
        onProgress: (doneBytes, totalBytes) => Object.assign(progress, { doneBytes, totalBytes }),
      })
      .then((folder) => {
        logger.info("a data set of the hub was fetched", { name, revision, files: chosen.length });
        return chosen.map((file) => path.join(folder, file));
      });
    return Object.assign(progress, { files });
  }
}
