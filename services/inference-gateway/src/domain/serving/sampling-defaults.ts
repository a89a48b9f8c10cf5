/** Reads the sampling parameters that a model's authors recommend from its `generation_config.json`, as vLLM does. */

import { isInRange, mapParameters, type SamplingName } from "@hone/rl";

/** Defaults for the parameters of requests; a parameter that is absent here has the default of the API. */
export type SamplingDefaults = Readonly<Record<SamplingName, number | undefined>>;

/** @param text of `generation_config.json`, which holds a JSON object; undefined = the model has no such file. */
export function readSamplingDefaults(text: string | undefined): SamplingDefaults {
  const file: unknown = JSON.parse(text ?? "{}");
  const settings = new Map(typeof file === "object" && file !== null ? Object.entries(file) : []);
  return mapParameters(({ snakeName, range, inRequests = range }) => {
    const value: unknown = settings.get(snakeName);
    // Values that a request may not have are left out, as such files are also written for other programs.
    return typeof value === "number" && isInRange(value, inRequests) ? value : undefined;
  });
}
