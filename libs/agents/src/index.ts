/**
 * Building blocks of agents: registries of agents and environments, the policy as a LangChain chat model, and the exact record
 * of what the policy was shown and what it sampled.
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
  EpisodeOffer,
  SessionEndpoint,
  SessionOptions,
  SessionRole,
} from "./definitions/agent.ts";
export { agentNames, agentOf, defineAgent, register, rolloutOf } from "./definitions/agent.ts";
export type { AgentCatalogOptions, AgentChoice, PreparedAgent } from "./definitions/agent-catalog.ts";
export { AgentCatalog } from "./definitions/agent-catalog.ts";
export type { LoadedModules, ModuleExports } from "./definitions/agent-modules.ts";
export { AgentModules } from "./definitions/agent-modules.ts";
export type { AgentTask, TaskEnvironment } from "./definitions/agent-task.ts";
export { checkConfig, type InputProblem, unknownName } from "./definitions/check-input.ts";
export type {
  ActionTool,
  Environment,
  EnvironmentContext,
  EnvironmentDefinition,
  EnvironmentDescription,
  EnvironmentFrame,
  EnvironmentInfo,
  EnvironmentMessage,
  EnvironmentReset,
  EnvironmentStep,
} from "./definitions/environment.ts";
export {
  ActionFormat,
  defineEnvironment,
  environmentNames,
  environmentOf,
  registerEnvironment,
} from "./definitions/environment.ts";
export type { RowTools } from "./definitions/task-row.ts";
export { agentOfRow, groundTruthOfRow, promptOfRow, toolsOfRow } from "./definitions/task-row.ts";
export {
  AttemptTimedOutError,
  BadRowError,
  DuplicateNameError,
  EnvironmentRefusedError,
  InfrastructureError,
  LimitReachedError,
  ModelCallAbandonedError,
  PolicyRefusedError,
  PolicyStaleError,
  PolicyUnavailableError,
  UnsupportedMessageError,
} from "./errors.ts";
export { CallKind, DRIFT_KINDS, sharedMessages } from "./model/call-kind.ts";
export type { ModelCall } from "./model/call-model.ts";
export { callModel, formatOf } from "./model/call-model.ts";
export { toChatMessage, toChatToolCall, toLangChainMessages } from "./model/chat-messages.ts";
export type { AnswerMetadata } from "./model/hone-chat-model.ts";
export { HoneChatModel } from "./model/hone-chat-model.ts";
export { installLeanRunContext } from "./model/lean-run-context.ts";
export type { ModelAnswer, ModelSessionOptions, RolePolicy } from "./model/model-session.ts";
export { ModelSession } from "./model/model-session.ts";
export type { BusPolicyOptions } from "./policies/bus-policy.ts";
export { BusPolicy } from "./policies/bus-policy.ts";
export { EndpointPolicy, EndpointUnavailableError } from "./policies/endpoint-policy.ts";
export type { GenerateCall, Policy, PolicyGeneration } from "./policies/policy.ts";
export { postAndWait } from "./policies/post-and-wait.ts";
export { chooseReplica } from "./policies/rendezvous.ts";
export type { ReplicaChange } from "./policies/replica-directory.ts";
export { ReplicaDirectory } from "./policies/replica-directory.ts";
export type { Script } from "./policies/scripted-policy.ts";
export { ScriptedPolicy, scriptNames, scriptOf } from "./policies/scripted-policy.ts";
export { streamAnswer } from "./policies/stream-answer.ts";
export { AttemptClock } from "./rollout/attempt-clock.ts";
export type { ConversationRecord, PreparedCall, RecordedTurn } from "./rollout/conversation.ts";
export { Conversation } from "./rollout/conversation.ts";
export { nameOfState, RolloutEnvironment } from "./rollout/rollout-environment.ts";
export type { ObservedCall, RolloutObserver } from "./rollout/rollout-observer.ts";
export type { ReadAnswer, ToolCallFormat, ToolCallFormatName } from "./tool-calls/formats.ts";
export {
  formatOfTemplate,
  readAnswer,
  TOOL_CALL_FORMAT_NAMES,
  TOOL_CALL_FORMATS,
} from "./tool-calls/formats.ts";
export type { AnswerPiece, AnswerReader, ToolSchema, WrittenCall } from "./tool-calls/tool-call.ts";
export { calculatorConfigSchema, makeCalculator } from "./tools/calculator.ts";
export { problemIn } from "./tools/check-arguments.ts";
export { CutSide, cutAnswer } from "./tools/cut-answer.ts";
export { toLangChainTools, toolsOf } from "./tools/langchain-tools.ts";
export type { RolloutToolsOptions, ToolUse } from "./tools/rollout-tools.ts";
export { RolloutTools } from "./tools/rollout-tools.ts";
export type { SearchConfig } from "./tools/search.ts";
export { makeSearch, searchConfigSchema } from "./tools/search.ts";
export type { Passage } from "./tools/search-index.ts";
export { SearchIndex } from "./tools/search-index.ts";
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
