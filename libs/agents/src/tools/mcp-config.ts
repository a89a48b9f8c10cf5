/** The schema of `mcpServers` in an agent's file: servers that speak the Model Context Protocol. */

import { z } from "zod";

const common = {
  /** Names of the tools that are used; absent = all. */
  select: z.array(z.string()).optional(),
  /** Deadline of one call, in addition to the agent's own. */
  deadlineMs: z.number().int().min(1).max(86_400_000).default(30_000),
};

export const mcpServerSchema = z.union([
  z.strictObject({
    /** Program that is started once in each process and ended with it. */
    command: z.string().min(1),
    args: z.array(z.string()).default([]),
    /** Variables in addition to PATH, HOME and the like; the rest of the service's environment is not passed on. */
    env: z.record(z.string(), z.string()).default({}),
    ...common,
  }),
  z.strictObject({
    url: z.url(),
    /**
     * Maps the names of headers to the environment variables that hold their values, so that no file holds a secret. Only
     * variables of agent-rollout whose names begin with HONE_TOOL_ are allowed.
     */
    headersFromEnv: z.record(z.string(), z.string().startsWith("HONE_TOOL_")).default({}),
    ...common,
  }),
]);
export type McpServerConfig = z.output<typeof mcpServerSchema>;
