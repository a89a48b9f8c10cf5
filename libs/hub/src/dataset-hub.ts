/** Data sets of the Hugging Face hub as folders of the shared cache; only the chosen files are downloaded. */

import { type FetchOptions, RepositoryHub } from "./repository-hub.ts";
import type { HubSettings } from "./settings.ts";

export class DatasetHub {
  readonly #repositories: RepositoryHub;

  constructor(settings: HubSettings) {
    this.#repositories = new RepositoryHub(settings, "dataset");
  }

  /**
   * @returns the folder of a data set at a revision, with the chosen files in it.
   * @param choose selects the files out of all paths; an error that it throws is passed on.
   * @throws {HubRefusedError} when this caller cannot get such a data set, or the cache lacks it and downloads are disabled.
   * @throws {HubUnavailableError} when the hub does not answer or a download broke off; the next call continues it.
   */
  folderOf(
    dataset: string,
    revision: string,
    choose: (paths: readonly string[]) => readonly string[],
    options: FetchOptions,
  ): Promise<string> {
    return this.#repositories.folderOf(dataset, revision, choose, options);
  }
}
