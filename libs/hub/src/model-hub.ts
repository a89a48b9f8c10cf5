/** Models of the Hugging Face hub as folders of the shared cache; only the files that make up a model are fetched. */

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
   * The folder of a model at a revision; what the cache lacks is fetched.
   * @throws {HubRefusedError} when there is no such model for this caller, or the cache lacks it and may not be filled.
   * @throws {HubUnavailableError} when the hub is away or a download broke off; the next call goes on.
   */
  folderOf(model: string, revision: string, options: FetchOptions): Promise<string> {
    const choose = (paths: readonly string[]) => {
      const wanted = modelFilesOf(paths);
      if (hasWeights(wanted)) return wanted;
      throw new HubRefusedError(model, "it has weights in safetensors", paths.join(", "));
    };
    return this.#repositories.folderOf(model, revision, choose, options);
  }
}
