/** The agent `single_turn`: the model answers the row's prompt once. */

import { type AgentDefinition, promptOfRow, rolloutOf, toLangChainMessages } from "@hone/agents";
import { type BaseMessage, SystemMessage } from "@langchain/core/messages";
import { entrypoint } from "@langchain/langgraph";
import { z } from "zod";

export const singleTurnConfigSchema = z.strictObject({
  /** Placed first if the row's prompt has no system message; empty = none. */
  systemPrompt: z.string().default(""),
});
export type SingleTurnConfig = z.output<typeof singleTurnConfigSchema>;

export const singleTurnAgent: AgentDefinition<SingleTurnConfig, ReturnType<typeof buildGraph>> = {
  configSchema: singleTurnConfigSchema,
  needsEnvironment: false,
  needsRow: true,
  buildGraph,
  async run(graph, rollout) {
    const messages = toLangChainMessages(promptOfRow(rollout.task));
    const { isCut } = await graph.invoke(messages, { configurable: { rollout } });
    return { isTruncated: isCut };
  },
};

function buildGraph({ systemPrompt }: SingleTurnConfig) {
  return entrypoint("single_turn", async (messages: BaseMessage[], run): Promise<{ isCut: boolean }> => {
    const { model } = rolloutOf<SingleTurnConfig>(run);
    const needsSystem = systemPrompt !== "" && messages[0]?.type !== "system";
    const answer = await model.invoke(
      needsSystem ? [new SystemMessage(systemPrompt), ...messages] : messages,
      run,
    );
    return { isCut: answer.response_metadata.finishReason === "length" };
  });
}
