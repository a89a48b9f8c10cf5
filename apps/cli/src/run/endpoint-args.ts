/** Options of a command that name a model behind an OpenAI-compatible API. */

import { UsageError } from "../errors.ts";

export const endpointArgs = {
  endpoint: {
    type: "string",
    description: "Base URL of an OpenAI-compatible API, including /v1; --model names its model",
    valueHint: "URL",
  },
  "api-key-env": {
    type: "string",
    description: "Environment variable that holds the endpoint's key",
    valueHint: "VAR",
  },
} as const;

export interface NamedEndpoint {
  readonly baseUrl: string;
  readonly model: string;
  readonly keyVariable?: string;
}

/** The variable that services read; the value of another variable is copied to it. */
const KEY_VARIABLE = "HONE_ENDPOINT_KEY";

/**
 * @returns the endpoint of the options; undefined if they name none.
 * @throws {UsageError} when an option or the key is missing.
 */
export function endpointOf(args: {
  readonly endpoint?: string | undefined;
  readonly model?: string | undefined;
  readonly "api-key-env"?: string | undefined;
}): NamedEndpoint | undefined {
  const { endpoint: baseUrl, model, "api-key-env": variable } = args;
  if (baseUrl === undefined) {
    if (variable === undefined) return undefined;
    throw new UsageError("--api-key-env needs --endpoint, the API that the key is for");
  }
  if (model === undefined) {
    throw new UsageError("--endpoint needs --model, the name of the endpoint's model");
  }
  if (variable === undefined) return { baseUrl, model };
  const key = process.env[variable];
  if (key === undefined || key === "") {
    throw new UsageError(`the environment variable ${variable}, which --api-key-env names, is not set`);
  }
  const keyVariable = variable.startsWith(KEY_VARIABLE) ? variable : KEY_VARIABLE;
  process.env[keyVariable] = key;
  // A user who names key and address in one command allows this key to be sent to that host.
  process.env[`${keyVariable}_HOSTS`] ??= URL.canParse(baseUrl) ? new URL(baseUrl).origin : "";
  return { baseUrl, model, keyVariable };
}
