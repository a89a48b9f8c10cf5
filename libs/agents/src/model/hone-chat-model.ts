/**
 * The policy as a LangChain chat model.
 *
 * Every call is recorded as a turn of the attempt. The `response_metadata` of the answer has its token ids, their logprobs and
 * versions, and their place in the record. With tools bound, calls are read from the text that the model wrote, in the format
 * of its chat template. Sampling is never constrained to a call, because the logprobs must stay those of the policy: a
 * `tool_choice` of "none" hides the tools, and all other values mean "auto".
 */

import type { Generation } from "@hone/rl";
import type { ChatTool } from "@hone/tokenizer";
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import type { BaseLanguageModelInput } from "@langchain/core/language_models/base";
import {
  BaseChatModel,
  type BaseChatModelCallOptions,
  type BaseChatModelParams,
  type BindToolsInput,
} from "@langchain/core/language_models/chat_models";
import { AIMessage, AIMessageChunk, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";
import type { Runnable } from "@langchain/core/runnables";
import { convertToOpenAITool } from "@langchain/core/utils/function_calling";
import { UnsupportedMessageError } from "../errors.ts";
import { streamAnswer } from "../policies/stream-answer.ts";
import type { ToolCallFormatName } from "../tool-calls/formats.ts";
import { callModel, formatOf, isPlain } from "./call-model.ts";
import { toChatMessage, toLangChainCall } from "./chat-messages.ts";
import type { ModelAnswer, ModelSession } from "./model-session.ts";
import type { ToolAnswerMessage } from "./read-tool-answer.ts";

/** What `response_metadata` of an answer holds. */
export interface AnswerMetadata extends Generation {
  /** Index of the turn, and of the sample that holds it. */
  readonly turn: number;
  readonly sample: number;
  /** Tokens of the conversation up to and including this answer. */
  readonly contextTokens: number;
}

/** Options of one call. */
export interface HoneCallOptions extends BaseChatModelCallOptions {
  readonly tools?: BindToolsInput[];
}

/** Options of the model. */
export interface HoneChatModelOptions extends BaseChatModelParams {
  /** The format in which tool calls are written. @default that of the chat template */
  readonly toolCallFormat?: ToolCallFormatName;
  /** The role that the model has among several; see {@link HoneChatModel.withRole}. */
  readonly role?: { readonly name: string; readonly learns: boolean };
}

export class HoneChatModel extends BaseChatModel<HoneCallOptions, AIMessageChunk> {
  readonly #session: ModelSession;
  readonly #options: HoneChatModelOptions;

  constructor(session: ModelSession, options: HoneChatModelOptions = {}) {
    super(options);
    this.#session = session;
    this.#options = options;
  }

  override _llmType(): string {
    return "hone";
  }

  /** The same model, with another format of tool calls. */
  withToolCallFormat(toolCallFormat: ToolCallFormatName): HoneChatModel {
    return new HoneChatModel(this.#session, { ...this.#options, toolCallFormat });
  }

  /**
   * The same model as one of several agents of a rollout. Its turns have the role's name; if the role does not learn, they are
   * recorded but not trained. Where the run file gives the role a policy of its own, that one answers.
   */
  withRole(name: string, { learn = true }: { readonly learn?: boolean } = {}): HoneChatModel {
    return new HoneChatModel(this.#session, { ...this.#options, role: { name, learns: learn } });
  }

  override bindTools(
    tools: BindToolsInput[],
    kwargs?: Partial<HoneCallOptions>,
  ): Runnable<BaseLanguageModelInput, AIMessageChunk, HoneCallOptions> {
    return this.withConfig({ ...kwargs, tools });
  }

  override async _generate(messages: BaseMessage[], options: this["ParsedCallOptions"]): Promise<ChatResult> {
    const tools = toolsOf(options);
    const { answer, message } = await this.#call(messages, tools);
    if (!isPlain(this.#format, tools)) return resultOf(answer, chunkOf(message, { ...metadataOf(answer) }));
    const metadata = { ...metadataOf(answer) };
    return resultOf(answer, new AIMessage({ content: message.content, response_metadata: metadata }));
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    options: this["ParsedCallOptions"],
    runManager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const tools = toolsOf(options);
    const { tokenizer } = this.#session.renderer;
    const format = this.#format;
    const stream = streamAnswer(tokenizer, format, tools, (onTokens) =>
      this.#call(messages, tools, onTokens),
    );
    for await (const piece of stream) {
      const isLast = piece.kind === "end";
      const chunk = new ChatGenerationChunk({
        text: piece.text,
        message: isLast
          ? chunkOf(
              { ...piece.result.message, content: piece.text },
              { ...metadataOf(piece.result.answer), usage: usageOf(piece.result.answer) },
            )
          : new AIMessageChunk({ content: piece.text }),
      });
      yield chunk;
      await runManager?.handleLLMNewToken(piece.text, undefined, undefined, undefined, undefined, { chunk });
    }
  }

  get #format(): ToolCallFormatName {
    return this.#options.toolCallFormat ?? formatOf(this.#session.renderer);
  }

  async #call(
    messages: readonly BaseMessage[],
    tools: readonly ChatTool[],
    onTokens?: (tokenIds: readonly number[]) => void,
  ): Promise<{ answer: ModelAnswer; message: ToolAnswerMessage }> {
    const { role } = this.#options;
    const made = await callModel(this.#session, {
      messages: messages.map(toChatMessage),
      tools,
      format: this.#format,
      options: {
        ...(onTokens !== undefined && { onTokens }),
        ...(role !== undefined && { learns: role.learns, role: role.name }),
      },
    });
    if (role !== undefined) made.answer.turn.info = { ...made.answer.turn.info, role: role.name };
    return made;
  }
}

function toolsOf(options: HoneCallOptions): ChatTool[] {
  // An end that is not one of the model's tokens cannot be part of the record.
  if (options.stop !== undefined && options.stop.length > 0) {
    throw new UnsupportedMessageError(`stop texts (${JSON.stringify(options.stop)})`);
  }
  if (options.tool_choice === "none") return [];
  return (options.tools ?? []).map((tool) => {
    const { function: definition } = convertToOpenAITool(tool);
    return {
      type: "function",
      function: {
        name: definition.name,
        description: definition.description ?? "",
        parameters: { ...definition.parameters },
      },
    };
  });
}

/** A chunk, as LangChain's structured output expects one. */
function chunkOf(
  { content, tool_calls = [], invalidCalls }: ToolAnswerMessage,
  metadata: Readonly<Record<string, unknown>>,
): AIMessageChunk {
  const chunk = new AIMessageChunk({
    content,
    tool_calls: tool_calls.map(toLangChainCall),
    response_metadata: { ...metadata },
  });
  // The constructor would take these only from chunks of calls.
  chunk.invalid_tool_calls = invalidCalls.map(({ text, reason }) => ({
    args: text,
    error: reason,
    type: "invalid_tool_call" as const,
  }));
  return chunk;
}

function metadataOf(answer: ModelAnswer): AnswerMetadata {
  const { turn, generation } = answer;
  const { tokenIds, logprobs, versions, finishReason } = generation;
  const { total_tokens: contextTokens } = usageOf(answer);
  return {
    tokenIds,
    logprobs,
    versions,
    finishReason,
    turn: turn.index,
    sample: turn.sample,
    contextTokens,
  };
}

function usageOf({ promptTokenCount, generation }: ModelAnswer) {
  const output = generation.tokenIds.length;
  return { input_tokens: promptTokenCount, output_tokens: output, total_tokens: promptTokenCount + output };
}

function resultOf(answer: ModelAnswer, message: AIMessage | AIMessageChunk): ChatResult {
  const { input_tokens, output_tokens, total_tokens } = usageOf(answer);
  return {
    generations: [{ text: message.text, message }],
    llmOutput: {
      tokenUsage: {
        promptTokens: input_tokens,
        completionTokens: output_tokens,
        totalTokens: total_tokens,
      },
    },
  };
}
