/** Data sets of the Hugging Face hub as folders of the shared cache; only the files that are asked for are fetched. */

import { type FetchOptions, RepositoryHub } from "./repository-hub.ts";
import type { HubSettings } from "./settings.ts";

export class DatasetHub {
  readonly #repositories: RepositoryHub;

  constructor(settings: HubSettings) {
    this.#repositories = new RepositoryHub(settings, "dataset");
  }

  /**
   * The folder of a data set at a revision, with the chosen files in it.
   * @param choose picks them out of all paths; what it throws is thrown.
   * @throws {HubRefusedError} when there is no such data set for this caller, or the cache lacks it and may not be filled.
   * @throws {HubUnavailableError} when the hub is away or a download broke off; the next call goes on.
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
