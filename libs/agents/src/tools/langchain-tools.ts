/** The tools of a toolbox as LangChain tools, for graphs that are built once and run for many rollouts. */

import type { RunnableConfig } from "@langchain/core/runnables";
import { DynamicStructuredTool } from "@langchain/core/tools";
import { callId } from "../model/read-tool-answer.ts";
import type { RolloutTools } from "./rollout-tools.ts";
import type { Toolbox } from "./toolbox.ts";

/** The tools of the rollout that a graph was invoked for: `graph.invoke(input, { configurable: { rollout, tools } })`. */
export function toolsOf(config: RunnableConfig): RolloutTools {
  const tools: unknown = config.configurable?.tools;
  if (tools === undefined) throw new TypeError("the graph was invoked without the tools of its rollout");
  return tools as RolloutTools;
}

/**
 * Each tool runs for the rollout that its graph was invoked for, with that rollout's state, limits and record. If the arguments
 * are wrong, the answer says why.
 */
export function toLangChainTools(toolbox: Toolbox): DynamicStructuredTool[] {
  return toolbox.entries.map(
    ({ tool: { name, description, parameters } }) =>
      new DynamicStructuredTool({
        name,
        description,
        schema: parameters,
        func: async (args: Record<string, unknown>, _manager, config) => {
          const call = { id: callId(0, 0), type: "function" as const, function: { name, arguments: args } };
          return (await toolsOf(config ?? {}).answerOneByOne(call)).text;
        },
      }),
  );
}
