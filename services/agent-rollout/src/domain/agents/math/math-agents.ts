/**
 * The agents `math` and `python_math`: they solve a problem in steps, with a calculator or with Python, and the last answer
 * holds the result in \boxed{}. Only the judge knows the right answer. The agents of ChatLearn are in chatlearn-agents.ts.
 */

import type { AgentDefinition } from "@hone/agents";
import { z } from "zod";
import {
  buildToolAgent,
  runToolAgent,
  type ToolAgentConfig,
  toolAgentConfigSchema,
} from "../tool-agent/tool-agent.ts";

const MATH_PROMPT =
  "You solve math problems step by step. Use the calculator for arithmetic. Write your final answer in \\boxed{}.";
const PYTHON_MATH_PROMPT =
  "You solve math problems step by step. Use the tool python to compute; only what your code prints is shown to you. Write your final answer in \\boxed{}.";

type MathAgent = AgentDefinition<ToolAgentConfig, Awaited<ReturnType<typeof buildToolAgent>>>;

export const mathAgent: MathAgent = mathAgentWith(MATH_PROMPT, ["calculator"]);
export const pythonMathAgent: MathAgent = mathAgentWith(PYTHON_MATH_PROMPT, [{ name: "python", config: {} }]);

/** A tool agent with other defaults. */
function mathAgentWith(systemPrompt: string, tools: ToolAgentConfig["tools"]): MathAgent {
  return {
    configSchema: z.strictObject({
      ...toolAgentConfigSchema.shape,
      systemPrompt: z.string().default(systemPrompt),
      tools: toolAgentConfigSchema.shape.tools.unwrap().default(tools),
    }),
    needsEnvironment: false,
    needsRow: true,
    buildGraph: (config, context) => buildToolAgent(config, context),
    run: runToolAgent,
  };
}
