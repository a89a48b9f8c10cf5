/** Models of the Hugging Face hub as folders of the shared cache; only the files of the model are downloaded. */

import { HubRefusedError } from "./errors.ts";
import { hasWeights, modelFilesOf } from "./model-files.ts";
import { type FetchOptions, RepositoryHub } from "./repository-hub.ts";
import type { HubSettings } from "./settings.ts";

export class ModelHub {
  readonly #repositories: RepositoryHub;

  constructor(settings: HubSettings) {
    this.#repositories = new RepositoryHub(settings, "model");
  }

  /**
   * @returns the folder of a model at a revision; missing files are downloaded.
   * @throws {HubRefusedError} when this caller cannot get such a model, or the cache lacks it and downloads are disabled.
   * @throws {HubUnavailableError} when the hub does not answer or a download broke off; the next call continues it.
   */
  folderOf(model: string, revision: string, options: FetchOptions): Promise<string> {
    const choose = (paths: readonly string[]) => {
      const wanted = modelFilesOf(paths);
      if (hasWeights(wanted)) return wanted;
      const found = paths.length === 0 ? "no files" : `only ${paths.join(", ")}`;
      throw new HubRefusedError(model, `the repository must have weights in safetensors, but has ${found}`);
    };
    return this.#repositories.folderOf(model, revision, choose, options);
  }
}
