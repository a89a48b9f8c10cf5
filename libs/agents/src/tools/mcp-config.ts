/** How an agent's file names servers that speak the Model Context Protocol. */

import { z } from "zod";

const common = {
  /** Names of the tools that are used; absent = all. */
  select: z.array(z.string()).optional(),
  /** Of one call, beside the agent's own. */
  deadlineMs: z.number().int().min(1).max(86_400_000).default(30_000),
};

export const mcpServerSchema = z.union([
  z.strictObject({
    /** Started once in each process, and ended with it. */
    command: z.string().min(1),
    args: z.array(z.string()).default([]),
    /** Beside PATH, HOME and their like: nothing else of the service's environment is passed on. */
    env: z.record(z.string(), z.string()).default({}),
    ...common,
  }),
  z.strictObject({
    url: z.url(),
    /**
     * Names of headers, and of the environment variables that hold their values: secrets stand in no file. Only variables
     * of agent-rollout whose names begin with HONE_TOOL_ can be named.
     */
    headersFromEnv: z.record(z.string(), z.string().startsWith("HONE_TOOL_")).default({}),
    ...common,
  }),
]);
export type McpServerConfig = z.output<typeof mcpServerSchema>;
