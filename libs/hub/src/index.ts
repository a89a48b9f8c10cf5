/**
 * Models of the Hugging Face hub as local folders, in the cache that other programs share.
 *
 *     const hub = new ModelHub(readHubSettings(environment, homeFolder));
 *     const folder = await hub.folderOf("HuggingFaceTB/SmolLM2-135M-Instruct", "main", { signal });
 */
export { HubRefusedError, HubUnavailableError } from "./errors.ts";
export { findModel } from "./find-model.ts";
export { modelFilesOf } from "./model-files.ts";
export type { FetchModelOptions } from "./model-hub.ts";
export { isModelId, ModelHub } from "./model-hub.ts";
export type { HubSettings } from "./settings.ts";
export { readHubSettings } from "./settings.ts";
