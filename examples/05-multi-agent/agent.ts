/**
 * Two agents in one rollout, as an ordinary LangGraph graph:
 *
 *     reader -> calculator -> writer
 *
 * The reader turns a story into a formula, the calculator computes it, and the writer puts the result into words. Reader and
 * writer are the run's model, each with its own conversation; agent.yaml says which of them learns.
 */

import {
  type AgentRollout,
  buildToolbox,
  defineAgent,
  promptOfRow,
  rolloutOf,
  toLangChainMessages,
  toolConfigShape,
  toolsOf,
} from "@hone/agents";
import { type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { z } from "zod";

const role = z.strictObject({ learn: z.boolean().default(true) });

/** The keys of agent.yaml. */
const configSchema = z.strictObject({
  ...toolConfigShape,
  roles: z.strictObject({ reader: role, writer: role }),
});
type Config = z.output<typeof configSchema>;

const Work = Annotation.Root({
  story: Annotation<BaseMessage[]>,
  formula: Annotation<string>,
  /** The result; empty if the formula has none. */
  result: Annotation<string>,
});

const team = defineAgent({
  configSchema,
  needsEnvironment: false,
  needsRow: true,
  async buildGraph(config: Config, context) {
    const { reader, writer } = config.roles;
    const toolbox = await buildToolbox(config, context);
    const graph = new StateGraph(Work)
      .addNode("reader", async ({ story }, run) => {
        const model = rolloutOf<Config>(run).model.withRole("reader", reader);
        return { formula: (await model.invoke(story, run)).text };
      })
      .addNode("calculator", async ({ formula }, run) => {
        const [reply] = await toolsOf(run).answerAll([
          {
            id: "formula",
            type: "function",
            function: { name: "calculator", arguments: { expression: formula } },
          },
        ]);
        return { result: reply?.kind === "answered" ? reply.text : "" };
      })
      .addNode("writer", async ({ result }, run) => {
        const model = rolloutOf<Config>(run).model.withRole("writer", writer);
        await model.invoke([new HumanMessage(result)], run);
        return {};
      })
      .addEdge(START, "reader")
      .addEdge("reader", "calculator")
      // Without a result there is nothing to write: the formula remains the last message, and is not an answer.
      .addConditionalEdges("calculator", ({ result }) => (result === "" ? END : "writer"))
      .addEdge("writer", END)
      .compile();
    return { graph, toolbox };
  },
  async run({ graph, toolbox }, rollout: AgentRollout<Config>) {
    const tools = rollout.openTools(toolbox);
    const story = toLangChainMessages(promptOfRow(rollout.task));
    const { formula, result } = await graph.invoke(
      { story },
      { configurable: { rollout, tools }, signal: rollout.signal },
    );
    return { metadata: { formula, result } };
  },
});

export const agents = { team };
