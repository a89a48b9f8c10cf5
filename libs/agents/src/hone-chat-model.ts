/**
 * The policy as a LangChain chat model.
 *
 * Every call is a turn of the attempt's record; the answer's `response_metadata` carries its token ids, their
 * logprobs and versions, and where they stand in the record.
 */

import type { VersionSpan } from "@hone/rl";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import type { ChatResult } from "@langchain/core/outputs";
import { toChatMessage } from "./chat-messages.ts";
import type { ModelSession } from "./model-session.ts";
import type { FinishReason } from "./policy.ts";

/** What `response_metadata` of an answer holds. */
export interface AnswerMetadata {
  /** [N] the stop token included. */
  readonly tokenIds: readonly number[];
  /** [N] under the sampling distribution; empty when a script answered. */
  readonly logprobs: readonly number[];
  readonly versions: readonly VersionSpan[];
  readonly finishReason: FinishReason;
  /** Index of the turn, and of the sample that holds it. */
  readonly turn: number;
  readonly sample: number;
}

export class HoneChatModel extends BaseChatModel {
  readonly #session: ModelSession;

  constructor(session: ModelSession) {
    super({});
    this.#session = session;
  }

  override _llmType(): string {
    return "hone";
  }

  override async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    const { turn, generation, promptTokenCount } = await this.#session.call(messages.map(toChatMessage));
    const { tokenIds, logprobs, versions, finishReason } = generation;
    const metadata: AnswerMetadata = {
      tokenIds,
      logprobs,
      versions,
      finishReason,
      turn: turn.index,
      sample: turn.sample,
    };
    const message = new AIMessage({
      content: turn.responseText,
      response_metadata: { ...metadata },
    });
    const promptTokens = promptTokenCount;
    const completionTokens = tokenIds.length;
    return {
      generations: [{ text: turn.responseText, message }],
      llmOutput: {
        tokenUsage: { promptTokens, completionTokens, totalTokens: promptTokens + completionTokens },
      },
    };
  }
}
