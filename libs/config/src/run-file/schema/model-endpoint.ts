/** A model behind an OpenAI-compatible API. */

import { z } from "zod";
import { isHttpUrl } from "./http-url.ts";

const MAX_CHARACTERS = 1_024;

/** The environment variables of agent-rollout that may hold keys of endpoints. */
export const keyVariableSchema = variableOf("HONE_ENDPOINT_KEY");

function variableOf(prefix: string) {
  const name = new RegExp(`^${prefix}(_[A-Z0-9_]{1,64})?$`);
  return z.string().regex(name, `${prefix}, or a name that begins with ${prefix}_`);
}

/** An HTTP address. */
export const httpUrlSchema = z
  .string()
  .max(MAX_CHARACTERS)
  .refine(isHttpUrl, "an address that begins with http:// or https://");

export const modelEndpointSchema = z.strictObject({
  /** The address of the API, up to and including `/v1`. */
  baseUrl: httpUrlSchema,
  model: z.string().min(1).max(MAX_CHARACTERS),
  /** The environment variable of agent-rollout that holds the key, which is sent as a bearer token. */
  keyVariable: keyVariableSchema.optional(),
  /** Requests that each process, of agent-rollout or for a teacher of the trainer, sends at the same time. */
  concurrency: z.number().int().min(1).max(1_024).default(16),
});
/** A model that scores tokens by the completions of such an API, for the trainer. */
export const teacherEndpointSchema = modelEndpointSchema.extend({
  /** The environment variable of the trainer that holds the key, which is sent as a bearer token. */
  keyVariable: variableOf("HONE_TEACHER_KEY").optional(),
});
export type TeacherEndpoint = z.output<typeof teacherEndpointSchema>;

export type Endpoint = z.output<typeof modelEndpointSchema>;
