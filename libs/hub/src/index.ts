/**
 * Models and data sets of the Hugging Face hub as local folders, in the cache that all Hugging Face programs share.
 *
 *     const hub = new ModelHub(readHubSettings(environment, homeFolder));
 *     const folder = await hub.folderOf("HuggingFaceTB/SmolLM2-135M-Instruct", "main", { signal });
 */
export { DatasetHub } from "./dataset-hub.ts";
export { HubRefusedError, HubUnavailableError } from "./errors.ts";
export { findModel } from "./find-model.ts";
export { modelFilesOf } from "./model-files.ts";
export { ModelHub } from "./model-hub.ts";
export type { FetchOptions } from "./repository-hub.ts";
export { isRepositoryId } from "./repository-hub.ts";
export type { HubSettings } from "./settings.ts";
export { readHubSettings } from "./settings.ts";
