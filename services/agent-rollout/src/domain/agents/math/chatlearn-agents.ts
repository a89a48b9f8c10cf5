/**
 * The agents `matheval` and `mathcode`, for rows that were made for ChatLearn's agents of these names: the same tools, the
 * same names of keys in their file (`agent_cfg_path`) and the same ends. Both answer and call their tool until an answer has
 * no call or a limit is reached.
 *
 * `matheval` has a tool that says whether an answer is right, and so a model may learn to guess with it. Rows for it say in
 * their prompt that the tool is to be called, so the agent cannot do without. What bounds the guesses are `max_ai_message_turn`
 * and one call for each answer.
 */

import type { AgentDefinition } from "@hone/agents";
import { z } from "zod";
import {
  buildToolAgent,
  runToolAgent,
  type ToolAgentConfig,
  toolAgentConfigSchema,
} from "../tool-agent/tool-agent.ts";

/** Calls of one answer that are run: ChatLearn reads only the first. */
const MAX_PARALLEL_CALLS = 1;

const wholeNumber = z.number().int();

/** ChatLearn's keys, with its names. */
const chatlearnShape = {
  /** Most answers of the model; absent = the run's `rollout.maxTurns`, which bounds it in any case. */
  max_ai_message_turn: wholeNumber.min(1).optional(),
  /** No further answer is asked for once the conversation has this many tokens; absent = the run's `rollout.maxContextTokens`. */
  max_total_token_length: wholeNumber.min(1).optional(),
};

type ChatlearnConfig = ToolAgentConfig & z.output<z.ZodObject<typeof chatlearnShape>>;
type ChatlearnAgent = AgentDefinition<ChatlearnConfig, Awaited<ReturnType<typeof buildToolAgent>>>;

export const mathEvalAgent: ChatlearnAgent = agentWith("mathlighteval_reward");
export const mathCodeAgent: ChatlearnAgent = agentWith("execute_python");

function agentWith(tool: string): ChatlearnAgent {
  const { shape } = toolAgentConfigSchema;
  return {
    configSchema: z.strictObject({
      ...shape,
      ...chatlearnShape,
      tools: shape.tools.unwrap().default([tool]),
      maxParallelCalls: shape.maxParallelCalls.unwrap().default(MAX_PARALLEL_CALLS),
    }),
    needsEnvironment: false,
    needsRow: true,
    buildGraph: (config, context) =>
      buildToolAgent(config, context, {
        maxTurns: config.max_ai_message_turn,
        maxContextTokens: config.max_total_token_length,
      }),
    run: runToolAgent,
  };
}
