/**
 * The key `agent`: the agent that plays the rollouts.
 *
 * A named agent has its own configuration. Outside agents have keys here, which are short for the agents that start and call
 * them: `agent: { command: [...] }` means `agent: { name: command, config: { command: [...] } }`.
 */

import { z } from "zod";
import { httpUrlSchema, keyVariableSchema, modelEndpointSchema } from "./model-endpoint.ts";
import { MAX_ROLES, ROLE_NAME } from "./policies.ts";

/** Names of agents are part of the spans, rows and messages of every rollout. */
const MAX_NAME_CHARACTERS = 128;
/** Modules with a run's own agents and tools. */
const MAX_MODULES = 32;
/** The longest path that file systems allow. */
const MAX_PATH_CHARACTERS = 1_024;
const MAX_COMMAND_WORDS = 128;
/** One word of a command, or one variable. */
const MAX_WORD_CHARACTERS = 16_384;
const MAX_VARIABLES = 128;
/** Long enough for a client that computes between its calls, and short enough that the episode of a vanished one is soon free. */
const DEFAULT_LEASE_MS = 60_000;
/** Laptops that are closed and opened again during a working day. */
const DEFAULT_FREE_RETURNS = 8;

/** Names of the agents that run outside of Hone. */
export const OutsideAgent = {
  /** A program that is started for each rollout. */
  command: "command",
  /** An HTTP server that is called for each rollout. */
  endpoint: "endpoint",
  /** Clients anywhere, which ask for episodes over HTTP. */
  swarm: "swarm",
} as const;

const role = z
  .strictObject({
    /** Whether its tokens are trained on. */
    learn: z.boolean().default(true),
    /** An outside model that answers its calls; absent = the run's own model. */
    endpoint: modelEndpointSchema.optional(),
  })
  .refine(({ learn, endpoint }) => !learn || endpoint === undefined, {
    path: ["learn"],
    message: "false for a role that an outside model answers",
  });

const roles = z
  .record(z.string().regex(ROLE_NAME, "a name of a-z, 0-9, _ and -"), role)
  .refine((all) => Object.values(all).some(({ learn }) => learn), "at least one role that learns")
  .refine((all) => Object.keys(all).length <= MAX_ROLES, `at most ${MAX_ROLES} roles`);

/** Keys of all outside agents. */
const sessionShape = {
  /** The roles of a rollout, by the model name that their calls give. Absent = one role, which learns. */
  roles: roles.optional(),
  /** `session`: the agent may report rewards through its session. */
  rewards: z.enum(["none", "session"]).default("none"),
  /** Whether the agent gets the row with its ground truth, which one that hosts a game or checks answers itself needs. */
  exposeGroundTruth: z.boolean().default(false),
};

const environment = z
  .record(
    z
      .string()
      .regex(
        /^(?!HONE_|OPENAI_|ANTHROPIC_)[A-Za-z_][A-Za-z0-9_]{0,127}$/,
        "a variable's name; those that begin with HONE_, OPENAI_ and ANTHROPIC_ are set by the session",
      ),
    z.string().max(MAX_WORD_CHARACTERS),
  )
  .refine((all) => Object.keys(all).length <= MAX_VARIABLES, `at most ${MAX_VARIABLES} variables`);

const commandShape = {
  /** Program and arguments; it is started in the project folder for each rollout. */
  command: z.array(z.string().min(1).max(MAX_WORD_CHARACTERS)).min(1).max(MAX_COMMAND_WORDS),
  /** Variables in addition to those of the session. They must not hold secrets, as the run file is stored. */
  environment: environment.default({}),
};

const endpointShape = {
  /** Called with POST for each rollout. */
  endpoint: httpUrlSchema,
  /** Environment variable of agent-rollout that holds the key of the endpoint, sent as bearer token. */
  keyVariable: keyVariableSchema.optional(),
};

const swarm = z.strictObject({
  /** An episode whose client gives no sign of life for this long is given to another one. */
  leaseMs: z.number().int().min(100).max(3_600_000).default(DEFAULT_LEASE_MS),
  /** How often a rollout's episode may come back from clients that vanish or abort it before that counts as a failed attempt. */
  freeReturns: z.number().int().min(0).max(1_000).default(DEFAULT_FREE_RETURNS),
  /** An episode that no client begins within this time ends as infra_failed. Absent = it waits. */
  beginDeadlineMs: z.number().int().min(100).max(604_800_000).optional(),
});

const swarmShape = {
  /** How episodes are lent to clients. */
  swarm: swarm.prefault({}),
};

/** The configuration of the agent `command`. */
export const commandAgentSchema = z.strictObject({ ...commandShape, ...sessionShape });
export type CommandAgentConfig = z.output<typeof commandAgentSchema>;

/** The configuration of the agent `endpoint`. */
export const endpointAgentSchema = z.strictObject({ ...endpointShape, ...sessionShape });
export type EndpointAgentConfig = z.output<typeof endpointAgentSchema>;

/** The configuration of the agent `swarm`. */
export const swarmAgentSchema = z.strictObject({ ...swarmShape, ...sessionShape });
export type SwarmAgentConfig = z.output<typeof swarmAgentSchema>;

const written = z.strictObject({
  /** A registered agent, or one from the run's own modules. */
  name: z.string().min(1).max(MAX_NAME_CHARACTERS).optional(),
  /** A YAML file below the project folder; the command line inlines it as `config`. */
  configPath: z.string().min(1).max(MAX_PATH_CHARACTERS).optional(),
  config: z.record(z.string(), z.unknown()).optional(),
  /** TypeScript files below the project folder with the run's own agents and tools. */
  modules: z.array(z.string().min(1).max(MAX_PATH_CHARACTERS)).max(MAX_MODULES).optional(),
  command: commandShape.command.optional(),
  environment: environment.optional(),
  endpoint: endpointShape.endpoint.optional(),
  keyVariable: endpointShape.keyVariable,
  swarm: swarm.optional(),
  roles: roles.optional(),
  rewards: sessionShape.rewards.unwrap().optional(),
  exposeGroundTruth: sessionShape.exposeGroundTruth.unwrap().optional(),
});
type Written = z.output<typeof written>;

/** A named agent. */
export interface AgentChoice {
  readonly name: string;
  readonly configPath?: string;
  readonly config?: Readonly<Record<string, unknown>>;
  readonly modules?: readonly string[];
}

export const agentSchema = written
  .check((context) => {
    for (const [key, message] of problemsOf(context.value)) {
      context.issues.push({ code: "custom", input: context.value[key], path: [key], message });
    }
  })
  .transform(({ name, configPath, config, modules, ...outside }): AgentChoice => {
    const agent = OUTSIDE_AGENTS.find((key) => outside[key] !== undefined);
    if (name !== undefined || agent === undefined) {
      return {
        name: name ?? "",
        ...(configPath !== undefined && { configPath }),
        ...(config !== undefined && { config }),
        ...(modules !== undefined && { modules }),
      };
    }
    const given = Object.entries(outside).filter(([, value]) => value !== undefined);
    return { name: agent, config: Object.fromEntries(given) };
  });

/** Each is a key of `agent` with its own name. If several are given, the first decides. */
const OUTSIDE_AGENTS = [OutsideAgent.command, OutsideAgent.endpoint, OutsideAgent.swarm];

function* problemsOf(agent: Written): Generator<[keyof Written, string]> {
  const kind = (["name", ...OUTSIDE_AGENTS] as const).find((key) => agent[key] !== undefined);
  if (kind === undefined) {
    yield ["name", "a name, where command, endpoint and swarm are left out"];
    return;
  }
  for (const key of Object.keys(agent) as (keyof Written)[]) {
    if (agent[key] === undefined || key === kind || ALLOWED[kind].includes(key)) continue;
    yield [key, `left out where agent.${kind} is given`];
  }
  if (agent.config !== undefined && agent.configPath !== undefined) {
    yield ["configPath", "left out where agent.config is given"];
  }
}

const ALLOWED: Readonly<Record<"name" | "command" | "endpoint" | "swarm", readonly (keyof Written)[]>> = {
  name: ["configPath", "config", "modules"],
  command: ["environment", "roles", "rewards", "exposeGroundTruth"],
  endpoint: ["keyVariable", "roles", "rewards", "exposeGroundTruth"],
  swarm: ["roles", "rewards", "exposeGroundTruth"],
};
