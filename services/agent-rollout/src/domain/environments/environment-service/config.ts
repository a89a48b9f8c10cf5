/** The configuration of the environment `environment_service`. docs/environments.md describes the same for users. */

import { httpUrlSchema, keyVariableSchema } from "@hone/config";
import { z } from "zod";

const MAX_NAME_CHARACTERS = 1_024;
const MAX_PARAMETERS = 64;
const MAX_TIMEOUT_MS = 3_600_000;
const MIB = 1_048_576;

const name = z.string().min(1).max(MAX_NAME_CHARACTERS);
const parameters = z
  .record(z.string(), z.unknown())
  .refine((all) => Object.keys(all).length <= MAX_PARAMETERS, `at most ${MAX_PARAMETERS} entries`);

/** What a server speaks. */
export const ServiceProtocol = {
  /** AgentJet's environment service: JSON over HTTP, an instance for each episode. */
  agentjet: "agentjet",
  /** OpenEnv's servers: a WebSocket for each episode. */
  openenv: "openenv",
} as const;
export type ServiceProtocol = (typeof ServiceProtocol)[keyof typeof ServiceProtocol];

const keys = z.strictObject({
  protocol: z.enum([ServiceProtocol.agentjet, ServiceProtocol.openenv]).default(ServiceProtocol.agentjet),
  /** Where the server is, without the verb. */
  url: httpUrlSchema,
  /** Which of the server's environments; with OpenEnv a server has one. */
  envType: name.default("default"),
  /** Which of its tasks; absent = the seed as text, or with OpenEnv the seed alone. */
  taskId: name.optional(),
  /** Sent with every call, or with OpenEnv with the reset. */
  params: parameters.default({}),
  /** The environment variable of agent-rollout that holds the key, which is sent as a bearer token. */
  keyVariable: keyVariableSchema.optional(),
  /** Whether the server is asked for the episode's reward at its end. @default true with AgentJet; OpenEnv has no such call */
  evaluate: z.boolean().optional(),
  /** Whether the rewards of steps count. @default where the server is not asked for the episode's reward */
  stepRewards: z.boolean().optional(),
  /** An episode is a success from this reward on, where the server does not say so itself. */
  successReward: z.number().default(1),
  /** Time for each call. */
  timeoutMs: z.number().int().min(1).max(MAX_TIMEOUT_MS).default(60_000),
  /** Steps after which the episode is truncated; absent = the server's limit and that of the run alone. */
  maxSteps: z.number().int().min(1).max(10_000).optional(),
  /** Most bytes of one answer. */
  maxReplyBytes: z
    .number()
    .int()
    .min(1_024)
    .max(64 * MIB)
    .default(MIB),
  /** The entry of OpenEnv's action that holds the model's action. */
  actionField: name.optional(),
  /** The other entries of OpenEnv's action. */
  actionParams: parameters.optional(),
  /** The entry of OpenEnv's observation that the model is shown; absent = the whole observation as JSON. */
  observationField: name.optional(),
});

const OPENENV_KEYS = ["actionField", "actionParams", "observationField"] as const;

export const environmentServiceConfigSchema = keys.check((context) => {
  const { protocol, evaluate } = context.value;
  const refuse = (key: keyof z.output<typeof keys>, message: string) =>
    context.issues.push({ code: "custom", input: context.value[key], path: [key], message });
  if (protocol === ServiceProtocol.openenv) {
    if (evaluate === true)
      refuse("evaluate", "false, as OpenEnv's servers give rewards with their steps only");
    return;
  }
  for (const key of OPENENV_KEYS) {
    if (context.value[key] !== undefined) refuse(key, 'left out where protocol is not "openenv"');
  }
});
export type EnvironmentServiceConfig = z.output<typeof environmentServiceConfigSchema>;
