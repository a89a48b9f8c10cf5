/**
 * Renders conversations as token ids with the model's own chat template.
 *
 * C1: Only the first prompt is rendered as a whole. A later prompt consists of all ids so far, unchanged, and the ids of the
 *     text that the template puts after the answer: `template(all messages) - (shown before + answer)`. So the text between
 *     turns comes from the template, and sampled text is never tokenized again.
 * C2: That difference exists only if the template leaves earlier turns unchanged. Some templates do not, such as those of
 *     reasoning models that drop earlier thoughts. Then `extend` reports it, and the caller starts a new sample.
 * C3: The template first gets an answer with tool calls as the model wrote it (C1). If the template refuses or changes it, the
 *     template gets the calls as data instead, and the text after the answer is taken from that rendering.
 * C4: The same messages give the same prompt on every date, because templates that ask for the date get a fixed one.
 * C5: Control tokens that are spelled out by users, tools or system prompts stay text (spelled-tokens.ts).
 * C6: If a template does not support tool calls, those of an answer are written into its text, in the format that the prompt
 *     asks the model to use.
 */

import { describeError } from "@hone/core";
import { BoundedTemplate } from "./bounded-template.ts";
import type { ChatMessage, ChatTool } from "./chat-message.ts";
import { ChatTemplateError, TemplateLimitError } from "./errors.ts";
import { encodeSpelled, markSpelled, type SpelledText, unmarkSpelled } from "./spelled-tokens.ts";
import type { Tokenizer } from "./tokenizer.ts";

/** A prompt that was rendered as a whole. */
export interface RenderedPrompt {
  readonly text: string;
  readonly tokenIds: readonly number[];
}

/** The text after an answer, or `rewrites` if the template changes earlier turns (C2). */
export type RenderedExtension =
  | {
      readonly kind: "extends";
      /** The whole text so far, including the answer. */
      readonly text: string;
      /** The part of it that is new. */
      readonly addedText: string;
      readonly addedIds: readonly number[];
    }
  | { readonly kind: "rewrites" };

/** An answer of the model. */
export interface RenderedAnswer {
  /** Its text without the stop token, as in the message. */
  readonly content: string;
  /** The stop token that ended it; absent when it was cut off. */
  readonly stopTokenId: number | undefined;
  /** Its index among the messages; absent = it has no tool calls. */
  readonly messageIndex?: number;
}

export class ChatRenderer {
  readonly tokenizer: Tokenizer;
  /** Whether the template lists the available tools in the prompt. */
  readonly showsTools: boolean;
  readonly #showsCalls: boolean;
  readonly #template: BoundedTemplate;

  /**
   * @throws {ChatTemplateError} when the tokenizer has no chat template, or one that cannot be parsed or that exceeds the
   * limits of rendering even for a one-word conversation.
   */
  constructor(tokenizer: Tokenizer) {
    this.tokenizer = tokenizer;
    if (tokenizer.chatTemplate === undefined) {
      throw new ChatTemplateError("the tokenizer must have a chat template, and has none");
    }
    try {
      this.#template = new BoundedTemplate(tokenizer.chatTemplate);
    } catch (error) {
      const begin = JSON.stringify(tokenizer.chatTemplate.slice(0, MAX_SHOWN_CHARACTERS));
      throw new ChatTemplateError(
        `the chat template must be Jinja; it begins with ${begin}: ${describeError(error)}`,
        { cause: error },
      );
    }
    this.showsTools = /\btools\b/.test(tokenizer.chatTemplate);
    this.#showsCalls = /\btool_calls\b/.test(tokenizer.chatTemplate);
    this.#probe();
  }

  /**
   * The whole prompt, up to where the model starts to write.
   * @throws {ChatTemplateError} when the template refuses the messages.
   */
  render(messages: readonly ChatMessage[], tools: readonly ChatTool[] = []): RenderedPrompt {
    const rendered = this.#renderText(messages.map(this.#asData), tools);
    return { text: rendered.text, tokenIds: encodeSpelled(this.tokenizer, rendered) };
  }

  /**
   * A finished conversation: without the text that asks the model for another answer.
   * @throws {ChatTemplateError} when the template refuses the messages.
   */
  renderEnded(messages: readonly ChatMessage[], tools: readonly ChatTool[] = []): RenderedPrompt {
    const rendered = this.#renderText(messages.map(this.#asData), tools, false);
    return { text: rendered.text, tokenIds: encodeSpelled(this.tokenizer, rendered) };
  }

  /**
   * The next prompt of a conversation (C1).
   * @param shownText what the model was shown before it answered.
   * @param messages the whole conversation: those shown, the answer, and at least one more.
   * @throws {ChatTemplateError} when the template refuses the messages.
   */
  extend(
    shownText: string,
    answer: RenderedAnswer,
    messages: readonly ChatMessage[],
    tools: readonly ChatTool[] = [],
  ): RenderedExtension {
    const hasCalls = messages.some((message) => message.tool_calls !== undefined);
    try {
      const extension = this.#extendWritten(shownText, answer, messages, tools);
      if (extension.kind === "extends" || !hasCalls) return extension;
    } catch (error) {
      if (!hasCalls || !(error instanceof ChatTemplateError)) throw error;
    }
    return this.#extendData(shownText, answer, messages, tools); // C3
  }

  /** The message with its tool calls as data, without the text that the model wrote. */
  #asData = ({ written: _, ...message }: ChatMessage): ChatMessage =>
    this.#showsCalls || message.tool_calls === undefined ? message : withCallsAsText(message);

  /** The message as the model wrote it, if that is known. */
  #asWritten = (message: ChatMessage): ChatMessage =>
    message.written === undefined ? this.#asData(message) : { role: message.role, content: message.written };

  /** Extends the conversation with answers as the model wrote them. */
  #extendWritten(
    shownText: string,
    answer: RenderedAnswer,
    messages: readonly ChatMessage[],
    tools: readonly ChatTool[],
  ): RenderedExtension {
    const rendered = this.#renderText(messages.map(this.#asWritten), tools);
    const { text } = rendered;
    if (!text.startsWith(shownText)) return { kind: "rewrites" };
    const answerEnd = endOfAnswer(text, shownText.length, answer.content);
    if (answerEnd === undefined) return { kind: "rewrites" };
    let addedText = text.slice(answerEnd);
    const stopToken = this.#stopTokenOf(answer);
    // The stop token was sampled, so the ids already contain it.
    if (stopToken !== undefined && addedText.startsWith(stopToken)) {
      addedText = addedText.slice(stopToken.length);
    }
    const addedIds = encodeSpelled(this.tokenizer, rendered, text.length - addedText.length);
    return { kind: "extends", text, addedText, addedIds };
  }

  /**
   * Extends the conversation with tool calls as data: the text after the answer is the difference of the renderings with and
   * without the later messages.
   */
  #extendData(
    shownText: string,
    answer: RenderedAnswer,
    messages: readonly ChatMessage[],
    tools: readonly ChatTool[],
  ): RenderedExtension {
    const { messageIndex } = answer;
    const stopToken = this.#stopTokenOf(answer);
    if (messageIndex === undefined || stopToken === undefined) return { kind: "rewrites" };
    const asDataAll = messages.map(this.#asData);
    const { text: before } = this.#renderText(asDataAll.slice(0, messageIndex + 1), tools, false);
    const rendered = this.#renderText(asDataAll, tools);
    const { text } = rendered;
    if (!before.startsWith(shownText) || !text.startsWith(before)) return { kind: "rewrites" };
    const stopAt = before.lastIndexOf(stopToken);
    const closing = stopAt < shownText.length ? "" : before.slice(stopAt + stopToken.length);
    const addedText = closing + text.slice(before.length);
    const addedIds = encodeSpelled(this.tokenizer, rendered, text.length - addedText.length);
    return { kind: "extends", text, addedText, addedIds };
  }

  #stopTokenOf({ stopTokenId }: RenderedAnswer): string | undefined {
    return stopTokenId === undefined ? undefined : this.tokenizer.tokenOf(stopTokenId);
  }

  /** Detects templates that exceed the limits before the first conversation. Other errors are left to real conversations. */
  #probe(): void {
    try {
      this.#renderText([{ role: "user", content: "Hello" }]);
    } catch (error) {
      if (error instanceof ChatTemplateError && error.cause instanceof TemplateLimitError) throw error;
    }
  }

  #renderText(
    messages: readonly ChatMessage[],
    tools: readonly ChatTool[] = [],
    hasPrompt = true,
  ): SpelledText {
    const marked = markSpelled(messages, this.tokenizer);
    try {
      const rendered = this.#template.render(
        {
          ...this.tokenizer.specialTokens,
          messages: marked.messages,
          // Templates test for tools by testing whether the variable is defined.
          ...(tools.length > 0 && { tools }),
          add_generation_prompt: hasPrompt,
        },
        { strftime_now: fixedDate }, // C4
      );
      return unmarkSpelled(rendered, marked.spelled); // C5
    } catch (error) {
      const roles = messages.map((message) => message.role).join(", ");
      const shown = roles === "" ? "without messages" : `of the roles ${roles}`;
      throw new ChatTemplateError(
        `the chat template cannot render a conversation ${shown}: ${describeError(error)}`,
        { cause: error },
      );
    }
  }
}

/** Writes tool calls into the text in the format of libs/agents/src/model/tool-prompt.ts (C6). */
function withCallsAsText({ tool_calls: calls = [], ...message }: ChatMessage): ChatMessage {
  const texts = calls.map(
    ({ function: { name, arguments: args } }) =>
      `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`,
  );
  return { ...message, content: [message.content, ...texts].filter((text) => text !== "").join("\n") };
}

/** How many characters of an invalid template an error message shows. */
const MAX_SHOWN_CHARACTERS = 200;
/** 26 July 2024, the default date in the templates of Llama 3, by the letters of strftime. */
const FIXED_DATE: Readonly<Record<string, string>> = {
  "%a": "Fri",
  "%A": "Friday",
  "%b": "Jul",
  "%B": "July",
  "%d": "26",
  "%m": "07",
  "%y": "24",
  "%Y": "2024",
  "%H": "00",
  "%M": "00",
  "%S": "00",
};

function fixedDate(format: string): string {
  return format.replace(/%[A-Za-z]/g, (letter) => FIXED_DATE[letter] ?? letter);
}

/** Where an answer that starts at `begin` ends; templates may trim it. */
function endOfAnswer(text: string, begin: number, content: string): number | undefined {
  for (const spelling of [content, content.trimEnd(), content.trim()]) {
    if (text.startsWith(spelling, begin)) return begin + spelling.length;
  }
  return undefined;
}
