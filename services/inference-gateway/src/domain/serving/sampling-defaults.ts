/** Reads the sampling parameters that a model's authors recommend from its `generation_config.json`, as vLLM does. */

import { z } from "zod";

/** Defaults for the parameters of requests; a parameter that is absent here has the default of the API. */
export interface SamplingDefaults {
  readonly temperature: number | undefined;
  readonly topP: number | undefined;
  readonly topK: number | undefined;
  readonly minP: number | undefined;
  readonly repetitionPenalty: number | undefined;
  readonly maxNewTokens: number | undefined;
}

/** Values that a request may not have are left out, as such files are also written for other programs. */
const setting = (schema: z.ZodNumber) => schema.optional().catch(undefined);

const fileSchema = z
  .object({
    temperature: setting(z.number().min(0).max(2)),
    top_p: setting(z.number().gt(0).max(1)),
    top_k: setting(z.number().int().min(0)),
    min_p: setting(z.number().min(0).max(1)),
    repetition_penalty: setting(z.number().gt(0).max(100)),
    max_new_tokens: setting(z.number().int().min(1)),
  })
  .catch({});

/** @param text of `generation_config.json`, which holds a JSON object; undefined = the model has no such file. */
export function readSamplingDefaults(text: string | undefined): SamplingDefaults {
  const file = fileSchema.parse(JSON.parse(text ?? "{}"));
  return {
    temperature: file.temperature,
    topP: file.top_p,
    topK: file.top_k,
    minP: file.min_p,
    repetitionPenalty: file.repetition_penalty,
    maxNewTokens: file.max_new_tokens,
  };
}
