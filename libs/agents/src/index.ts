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

export type { AgentDefinition, AgentEnvironment, AgentResult, AgentRollout, AgentTask } from "./agent.ts";
export { agentNames, agentOf, register, rolloutOf } from "./agent.ts";
export type { InputProblem, PreparedAgent } from "./agent-catalog.ts";
export { AgentCatalog, checkConfig, unknownName } from "./agent-catalog.ts";
export { AttemptClock } from "./attempt-clock.ts";
export type { BusPolicyOptions } from "./bus-policy.ts";
export { BusPolicy } from "./bus-policy.ts";
export { toChatMessage, toLangChainMessages } from "./chat-messages.ts";
export type { PreparedCall, RecordedTurn } from "./conversation.ts";
export { Conversation } from "./conversation.ts";
export type {
  Environment,
  EnvironmentDefinition,
  EnvironmentInfo,
  EnvironmentReset,
  EnvironmentStep,
} from "./environment.ts";
export { environmentNames, environmentOf, registerEnvironment } from "./environment.ts";
export {
  AttemptTimedOutError,
  BadRowError,
  DuplicateNameError,
  InfrastructureError,
  LimitReachedError,
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
export { chooseReplica } from "./rendezvous.ts";
export type { ReplicaChange } from "./replica-directory.ts";
export { ReplicaDirectory } from "./replica-directory.ts";
export type { Script } from "./scripted-policy.ts";
export { ScriptedPolicy, scriptNames, scriptOf } from "./scripted-policy.ts";
export type { TaskRow } from "./task-row.ts";
export { agentOfRow, readTaskRow } from "./task-row.ts";
