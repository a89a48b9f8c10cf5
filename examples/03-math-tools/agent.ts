/** The agent of this example: an ordinary LangGraph graph of a model and its tools. */

import {
  type AgentRollout,
  buildToolbox,
  defineAgent,
  promptOfRow,
  rolloutOf,
  toLangChainMessages,
  toLangChainTools,
  toolConfigShape,
} from "@hone/agents";
import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode, toolsCondition } from "@langchain/langgraph/prebuilt";
import { z } from "zod";

/** The keys of agent.yaml. */
const configSchema = z.strictObject(toolConfigShape);
type Config = z.output<typeof configSchema>;

const mathTools = defineAgent({
  configSchema,
  needsEnvironment: false,
  needsRow: true,
  // Built once for each configuration; the model and the tools of a rollout are passed to `run`.
  async buildGraph(config: Config, context) {
    const toolbox = await buildToolbox(config, context);
    const tools = toLangChainTools(toolbox);
    const graph = new StateGraph(MessagesAnnotation)
      .addNode("agent", async ({ messages }, run) => {
        const model = rolloutOf<Config>(run).model.bindTools(tools);
        return { messages: [await model.invoke(messages, run)] };
      })
      .addNode("tools", new ToolNode(tools))
      .addEdge(START, "agent")
      .addConditionalEdges("agent", toolsCondition)
      .addEdge("tools", "agent")
      .compile();
    return { graph, toolbox };
  },
  async run({ graph, toolbox }, rollout: AgentRollout<Config>) {
    const tools = rollout.openTools(toolbox);
    const messages = toLangChainMessages(promptOfRow(rollout.task));
    await graph.invoke({ messages }, { configurable: { rollout, tools }, signal: rollout.signal });
    return {};
  },
});

export const agents = { math_tools: mathTools };
