/** A model behind an OpenAI-compatible API, as options of a command name it. */

import { UsageError } from "../errors.ts";

export const endpointArgs = {
  endpoint: {
    type: "string",
    description: "An OpenAI-compatible API, up to and with /v1, of which --model names a model",
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

/** The variable that services know; another one's value is passed on under it. */
const KEY_VARIABLE = "HONE_ENDPOINT_KEY";

/**
 * @param action named in errors, such as "evaluate".
 * @returns undefined where no endpoint is named.
 * @throws {UsageError} when one is not named whole, or its key is missing.
 */
export function endpointOf(
  args: {
    readonly endpoint?: string | undefined;
    readonly model?: string | undefined;
    readonly "api-key-env"?: string | undefined;
  },
  action: string,
): NamedEndpoint | undefined {
  const { endpoint: baseUrl, model, "api-key-env": variable } = args;
  if (baseUrl === undefined) {
    if (variable === undefined) return undefined;
    throw new UsageError(`Cannot ${action} as --api-key-env goes with --endpoint: current value is none`);
  }
  if (model === undefined) {
    throw new UsageError(
      `Cannot ${action} an endpoint as --model must name its model: current value is none`,
    );
  }
  if (variable === undefined) return { baseUrl, model };
  const key = process.env[variable];
  if (key === undefined || key === "") {
    throw new UsageError(
      `Cannot ${action} as ${variable} must hold the endpoint's key: current value is none`,
    );
  }
  const keyVariable = variable.startsWith(KEY_VARIABLE) ? variable : KEY_VARIABLE;
  process.env[keyVariable] = key;
  // Who names key and address in one command means this key for that host.
  process.env[`${keyVariable}_HOSTS`] ??= URL.canParse(baseUrl) ? new URL(baseUrl).origin : "";
  return { baseUrl, model, keyVariable };
}
