/** How a model's authors mean it to be sampled: `generation_config.json` in its folder, as vLLM reads it. */

import { z } from "zod";

/** What a request's parameters are where it says nothing; what is absent here has the API's own default. */
export interface SamplingDefaults {
  readonly temperature: number | undefined;
  readonly topP: number | undefined;
  readonly topK: number | undefined;
  readonly minP: number | undefined;
  readonly repetitionPenalty: number | undefined;
  readonly maxNewTokens: number | undefined;
}

/** What a request may not ask for is left out: such files are written by other programs, for other purposes too. */
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

/** @param text of `generation_config.json`; undefined = the model has none. A JSON object, as its tokenizer was read. */
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
