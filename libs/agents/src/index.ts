/**
 * Building blocks of agents: registries of agents and environments, the policy as a LangChain chat model, and the
 * exact record of what it was shown and what it sampled.
 *
 * @example
 * register("echo", {
 *   configSchema: z.strictObject({}),
 *   needsEnvironment: false,
 *   buildGraph: () => new StateGraph(State).addNode("agent", agent).addEdge(START, "agent").compile(),
 *   run: async (graph, rollout) => { await graph.invoke({}, { configurable: { rollout } }); return {}; },
 * });
 */

export type {
  AgentDefinition,
  AgentEnvironment,
  AgentResult,
  AgentRollout,
  AgentSession,
  AgentTask,
  SessionEndpoint,
  SessionOptions,
  SessionRole,
} from "./agent.ts";
export { agentNames, agentOf, defineAgent, register, rolloutOf } from "./agent.ts";
export type { AgentCatalogOptions, AgentChoice, PreparedAgent } from "./agent-catalog.ts";
export { AgentCatalog } from "./agent-catalog.ts";
export type { LoadedModules, ModuleExports } from "./agent-modules.ts";
export { AgentModules } from "./agent-modules.ts";
export { AttemptClock } from "./attempt-clock.ts";
export type { BusPolicyOptions } from "./bus-policy.ts";
export { BusPolicy } from "./bus-policy.ts";
export { CallKind, DRIFT_KINDS } from "./call-kind.ts";
export type { ModelCall } from "./call-model.ts";
export { callModel, formatOf } from "./call-model.ts";
export { toChatMessage, toChatToolCall, toLangChainMessages } from "./chat-messages.ts";
export { checkConfig, type InputProblem, unknownName } from "./check-input.ts";
export type { ConversationRecord, PreparedCall, RecordedTurn } from "./conversation.ts";
export { Conversation } from "./conversation.ts";
export { EndpointPolicy, EndpointUnavailableError } from "./endpoint-policy.ts";
export type {
  Environment,
  EnvironmentDefinition,
  EnvironmentInfo,
  EnvironmentReset,
  EnvironmentStep,
} from "./environment.ts";
export { defineEnvironment, environmentNames, environmentOf, registerEnvironment } from "./environment.ts";
export {
  AttemptTimedOutError,
  BadRowError,
  DuplicateNameError,
  InfrastructureError,
  LimitReachedError,
  ModelCallAbandonedError,
  PolicyRefusedError,
  PolicyStaleError,
  PolicyUnavailableError,
  UnsupportedMessageError,
} from "./errors.ts";
export type { AnswerMetadata } from "./hone-chat-model.ts";
export { HoneChatModel } from "./hone-chat-model.ts";
export { installLeanRunContext } from "./lean-run-context.ts";
export type { ModelAnswer, ModelSessionOptions } from "./model-session.ts";
export { ModelSession } from "./model-session.ts";
export type { GenerateCall, Generation, Policy, SamplingParameters } from "./policy.ts";
export { FinishReason } from "./policy.ts";
export { postAndWait } from "./post-and-wait.ts";
export { chooseReplica } from "./rendezvous.ts";
export type { ReplicaChange } from "./replica-directory.ts";
export { ReplicaDirectory } from "./replica-directory.ts";
export { RolloutEnvironment } from "./rollout-environment.ts";
export type { Script } from "./scripted-policy.ts";
export { ScriptedPolicy, scriptNames, scriptOf } from "./scripted-policy.ts";
export { streamAnswer } from "./stream-answer.ts";
export type { RowTools } from "./task-row.ts";
export { agentOfRow, promptOfRow, toolsOfRow } from "./task-row.ts";
export type { ReadAnswer, ToolCallFormat, ToolCallFormatName } from "./tool-calls/formats.ts";
export {
  formatOfTemplate,
  readAnswer,
  TOOL_CALL_FORMAT_NAMES,
  TOOL_CALL_FORMATS,
} from "./tool-calls/formats.ts";
export type { AnswerPiece, AnswerReader, ToolSchema, WrittenCall } from "./tool-calls/tool-call.ts";
export { calculatorConfigSchema, makeCalculator } from "./tools/calculator.ts";
export { CutSide, cutAnswer } from "./tools/cut-answer.ts";
export { toLangChainTools, toolsOf } from "./tools/langchain-tools.ts";
export type { RolloutToolsOptions, ToolUse } from "./tools/rollout-tools.ts";
export { RolloutTools } from "./tools/rollout-tools.ts";
export type { SearchConfig } from "./tools/search.ts";
export { makeSearch, searchConfigSchema } from "./tools/search.ts";
export type {
  Tool,
  ToolAnswer,
  ToolBuildContext,
  ToolContext,
  ToolDefinition,
  ToolRollout,
} from "./tools/tool.ts";
export { defineTool, registerTool, toolNames, toolOf } from "./tools/tool.ts";
export type { BuildContext, OutsideAccess, ToolConfig } from "./tools/tool-config.ts";
export { buildToolbox, toolConfigShape } from "./tools/tool-config.ts";
export type { ToolLimits } from "./tools/toolbox.ts";
export { Toolbox } from "./tools/toolbox.ts";
export type { RolloutWitness, WitnessedCall } from "./witness.ts";
