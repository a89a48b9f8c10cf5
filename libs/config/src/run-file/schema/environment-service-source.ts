/** The tasks that an environment's server lists: each is an episode of the environment `environment_service`. */

import { z } from "zod";
import { httpUrlSchema } from "./model-endpoint.ts";

const MAX_NAME_CHARACTERS = 128;

/** What the source itself says of each task. */
const OWN_KEYS = ["protocol", "envType", "taskId"] as const;

export const environmentServiceSource = z.strictObject({
  source: z.literal("environment_service"),
  url: httpUrlSchema,
  envType: z.string().min(1).max(MAX_NAME_CHARACTERS).default("default"),
  /** Which of the server's lists. */
  split: z.string().min(1).max(MAX_NAME_CHARACTERS).default("train"),
  /** The environment variable of the dataset service that holds the bearer token for the list. */
  keyVariable: z
    .string()
    .regex(
      /^HONE_DATASET_KEY(_[A-Z0-9_]{1,64})?$/,
      "HONE_DATASET_KEY, or a name that begins with HONE_DATASET_KEY_",
    )
    .optional(),
  /** Other keys of the environment `environment_service`; its `url` is that of the source unless it is given here. */
  config: z
    .record(z.string(), z.unknown())
    .default({})
    .check((context) => {
      for (const key of OWN_KEYS) {
        if (!Object.hasOwn(context.value, key)) continue;
        const message = "left out, as the source itself says it";
        context.issues.push({ code: "custom", input: context.value[key], path: [key], message });
      }
    }),
});
export type EnvironmentServiceSource = z.output<typeof environmentServiceSource>;

/** The environment of a source's tasks. @param taskId absent = of all of them, as for a check. */
export function serviceEnvironmentOf(
  { url, envType, config }: EnvironmentServiceSource,
  taskId?: string,
): { readonly environment: string; readonly config: Readonly<Record<string, unknown>> } {
  return {
    environment: "environment_service",
    config: { url, ...config, envType, ...(taskId !== undefined && { taskId }) },
  };
}
