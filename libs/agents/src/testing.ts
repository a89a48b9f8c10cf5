/**
 * Runs an agent in a test with answers that are written beforehand, without services or a model.
 *
 * @example
 * const played = await playAgent(agents.mine, { row: { prompt: "2 + 2?" }, answers: ["4"] });
 * assert.equal(played.turns.at(-1)?.responseText, "4");
 */

import { BoundKeys, CodeGate } from "@hone/config";
import { FinishReason, type Sample } from "@hone/rl";
import { contextOfTraceparent } from "@hone/telemetry";
import { ChatRenderer } from "@hone/tokenizer";
import { chatmlTokenizer, TOOL_TEMPLATE } from "@hone/tokenizer/testing";
import type { AgentDefinition, AgentResult } from "./definitions/agent.ts";
import type { EnvironmentDefinition } from "./definitions/environment.ts";
import { toolsOfRow } from "./definitions/task-row.ts";
import { HoneChatModel } from "./model/hone-chat-model.ts";
import { ModelSession } from "./model/model-session.ts";
import type { GenerateCall, Policy, PolicyGeneration } from "./policies/policy.ts";
import { AttemptClock } from "./rollout/attempt-clock.ts";
import { Conversation, type RecordedTurn } from "./rollout/conversation.ts";
import { RolloutEnvironment } from "./rollout/rollout-environment.ts";
import { RolloutTools } from "./tools/rollout-tools.ts";
import type { Tool } from "./tools/tool.ts";

export interface PlayOptions {
  /** The dataset row; absent = the task has none. */
  readonly row?: Readonly<Record<string, unknown>>;
  /** The task's environment; absent = the task has none. */
  readonly environment?: {
    readonly definition: EnvironmentDefinition<unknown>;
    /** @default its defaults */
    readonly config?: Readonly<Record<string, unknown>>;
    /** @default 0 */
    readonly seed?: number;
  };
  /** The agent's file. @default its defaults */
  readonly config?: Readonly<Record<string, unknown>>;
  /** The model's answers, one for each call; the last one is repeated. */
  readonly answers: readonly string[];
  /** Tools by name, as a run's own modules export them. */
  readonly tools?: Readonly<Record<string, Tool>>;
  /** @default 10 */
  readonly maxTurns?: number;
  /** Paths in the agent's file are relative to it. @default the working directory */
  readonly filesFolder?: string;
}

/** The result of a played rollout. */
export interface PlayedRollout {
  readonly result: AgentResult;
  readonly turns: readonly RecordedTurn[];
  readonly samples: readonly Sample[];
  /** The whole context of each call, as text. */
  readonly prompts: readonly string[];
  /** Metrics and rewards of the tools. */
  readonly toolMetrics: Readonly<Record<string, number>>;
  readonly toolReward: number;
  /** Sum of the rewards of the environment, and its metrics. */
  readonly environmentReturn: number;
  readonly environmentMetrics: Readonly<Record<string, number>>;
}

const MAX_NEW_TOKENS = 2_000;
const MAX_CONTEXT_TOKENS = 100_000;
const DEADLINE_MS = 60_000;

/**
 * Runs one rollout. The model's format is ChatML, with tool calls as in Qwen's templates (`hermes`).
 * @throws what the agent throws, and errors that end a rollout, such as LimitReachedError.
 */
export async function playAgent(
  agent: AgentDefinition<unknown, unknown>,
  options: PlayOptions,
): Promise<PlayedRollout> {
  const { row, config = {}, answers, tools: ownTools = {}, maxTurns = 10, filesFolder = "." } = options;
  const renderer = new ChatRenderer(chatmlTokenizer(TOOL_TEMPLATE));
  const conversation = new Conversation(renderer);
  const over = new AbortController();
  const clock = new AttemptClock(DEADLINE_MS, () => over.abort(new Error(`no end after ${DEADLINE_MS} ms`)));
  const trace = contextOfTraceparent(undefined);
  const calls: GenerateCall[] = [];
  const session = new ModelSession({
    conversation,
    clock,
    trace,
    policy: writingPolicy(renderer, answers, calls),
    signal: over.signal,
    model: "test",
    sessionId: "test",
    groupId: "test",
    sampling: { temperature: 1, topP: 1, topK: 0, maxNewTokens: MAX_NEW_TOKENS },
    stopTokenIds: renderer.tokenizer.stopTokenIds,
    maxTurns,
    maxContextTokens: MAX_CONTEXT_TOKENS,
    lowestVersion: 0,
    highestVersion: 0,
    seedOfTurn: (turn) => turn,
  });
  await using opened = new AsyncDisposableStack();
  opened.defer(() => clock.end());
  const parsed = agent.configSchema.parse(config);
  const graph = await agent.buildGraph(parsed, {
    filesFolder,
    gate: new CodeGate({ filesFolder }),
    secrets: BoundKeys.none,
    tools: ownTools,
    onClose: (close) => opened.defer(close),
  });
  const task = { id: "test", row };
  const environment = options.environment && openEnvironment(options.environment, trace);
  environment?.attach(session);
  opened.defer(async () => environment?.close());
  const rolloutTools: RolloutTools[] = [];
  const result = await agent.run(graph, {
    config: parsed,
    task,
    model: new HoneChatModel(session),
    environment,
    maxTurns,
    maxNewTokens: MAX_NEW_TOKENS,
    signal: over.signal,
    openTools(toolbox) {
      const tools = new RolloutTools(toolbox, {
        ...toolsOfRow(task),
        task,
        tokenizer: renderer.tokenizer,
        trace,
        signal: over.signal,
        clock,
        seed: 0,
        lastTurn: () => session.lastTurn,
      });
      opened.defer(async () => void (await tools.close()));
      rolloutTools.push(tools);
      return tools;
    },
    openSession() {
      throw new TypeError("sessions are opened by the service agent-rollout, which does not run here");
    },
    offerEpisode() {
      throw new TypeError("episodes are offered by the service agent-rollout, which does not run here");
    },
  });
  await environment?.finish();
  return {
    result,
    turns: conversation.turns,
    samples: conversation.record().samples,
    prompts: calls.map(({ promptIds }) => renderer.tokenizer.decode(promptIds)),
    toolMetrics: Object.assign({}, ...rolloutTools.map((tools) => tools.metrics())) as Record<string, number>,
    toolReward: rolloutTools.reduce((sum, tools) => sum + tools.totalReward, 0),
    environmentReturn: environment?.totalReward ?? 0,
    environmentMetrics: environment?.metrics() ?? {},
  };
}

function openEnvironment(
  { definition, config = {}, seed = 0 }: NonNullable<PlayOptions["environment"]>,
  trace: ReturnType<typeof contextOfTraceparent>,
): RolloutEnvironment {
  const inner = definition.create(definition.configSchema.parse(config));
  return new RolloutEnvironment({ inner, name: "test", seed, trace });
}

/** A policy that gives the answers in order and collects its calls. */
function writingPolicy(renderer: ChatRenderer, answers: readonly string[], calls: GenerateCall[]): Policy {
  const { tokenizer } = renderer;
  return {
    async generate(call): Promise<PolicyGeneration> {
      const index = Math.min(calls.push(call), answers.length) - 1;
      const all = [...tokenizer.encode(answers[index] ?? ""), tokenizer.eosTokenId ?? 0];
      const tokenIds = all.slice(0, call.sampling.maxNewTokens);
      for (const id of tokenIds) call.onTokens?.([id]);
      return {
        tokenIds,
        logprobs: tokenIds.map(() => -1),
        versions: [{ version: 0, tokenCount: tokenIds.length }],
        finishReason: tokenIds.length === all.length ? FinishReason.stop : FinishReason.length,
        cachedTokens: 0,
        generationMs: 0,
        replica: "",
      };
    },
  };
}
