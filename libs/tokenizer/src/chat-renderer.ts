/**
 * Conversations as token ids, by the model's own chat template.
 *
 * C1: Only the first prompt is rendered whole. A later prompt is the ids so far, verbatim, and the ids of the text
 *     that the template puts after the answer: `template(all messages) - (shown before + answer)`. So what stands
 *     between turns is what the template says, and sampled text is never tokenized.
 * C2: That difference exists only where the template leaves earlier turns as they were. Some do not (a reasoning model's
 *     template that drops earlier thoughts): then `extend` says so, and the caller starts a new sample.
 * C3: An answer with calls of tools is shown to the template as it was written (C1). Where the template refuses that, or
 *     makes something else of it, it is shown the calls as data, and what follows the answer is taken from there.
 * C4: The same messages give the same prompt on every day: where a template asks for the date, it is told a fixed one.
 * C5: Control tokens that users, tools or system prompts spell out stay text (spelled-tokens.ts).
 * C6: Where a template knows no calls, those of an answer stand in its text, in the words in which models are asked for them.
 */

import { describeError } from "@hone/core";
import { BoundedTemplate } from "./bounded-template.ts";
import type { ChatMessage, ChatTool } from "./chat-message.ts";
import { ChatTemplateError, TemplateLimitError } from "./errors.ts";
import { encodeSpelled, markSpelled, type SpelledText, unmarkSpelled } from "./spelled-tokens.ts";
import type { Tokenizer } from "./tokenizer.ts";

/** What the model was shown first. */
export interface RenderedPrompt {
  readonly text: string;
  readonly tokenIds: readonly number[];
}

/** What came after an answer, or that the template does not allow to say so (C2). */
export type RenderedExtension =
  | {
      readonly kind: "extends";
      /** All that has been shown, the answer included, as text. */
      readonly text: string;
      /** The part of it that is new. */
      readonly addedText: string;
      readonly addedIds: readonly number[];
    }
  | { readonly kind: "rewrites" };

/** An answer of the model. */
export interface RenderedAnswer {
  /** Its text without the stop token, as the message carries it. */
  readonly content: string;
  /** The stop token that ended it; absent when it was cut off. */
  readonly stopTokenId: number | undefined;
  /** Which of the messages it is; absent = it has no calls of tools. */
  readonly messageIndex?: number;
}

export class ChatRenderer {
  readonly tokenizer: Tokenizer;
  /** Whether the template shows the model what tools there are. */
  readonly showsTools: boolean;
  readonly #showsCalls: boolean;
  readonly #template: BoundedTemplate;

  /**
   * @throws {ChatTemplateError} when the tokenizer has no chat template, one that cannot be parsed, or one that takes
   * more than a rendering may for a word.
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
   * A conversation that is over: without what asks the model for another answer.
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

  /** As data, without what was written. */
  #asData = ({ written: _, ...message }: ChatMessage): ChatMessage =>
    this.#showsCalls || message.tool_calls === undefined ? message : withCallsAsText(message);

  /** As it was written, where that is known. */
  #asWritten = (message: ChatMessage): ChatMessage =>
    message.written === undefined ? this.#asData(message) : { role: message.role, content: message.written };

  /** With answers as they were written. */
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
    // The stop token was sampled, so it stands in the ids already.
    if (stopToken !== undefined && addedText.startsWith(stopToken)) {
      addedText = addedText.slice(stopToken.length);
    }
    const addedIds = encodeSpelled(this.tokenizer, rendered, text.length - addedText.length);
    return { kind: "extends", text, addedText, addedIds };
  }

  /** With calls as data: what follows the answer is the difference of two renderings, with and without what comes after it. */
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

  /** A bomb is found before the first conversation. What else a template refuses is for conversations to find out. */
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
          // Templates ask whether there are any by asking whether the name is set.
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

/** Calls in the words of libs/agents/src/model/tool-prompt.ts (C6). */
function withCallsAsText({ tool_calls: calls = [], ...message }: ChatMessage): ChatMessage {
  const texts = calls.map(
    ({ function: { name, arguments: args } }) =>
      `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`,
  );
  return { ...message, content: [message.content, ...texts].filter((text) => text !== "").join("\n") };
}

/** Of a template that is wrong. */
const MAX_SHOWN_CHARACTERS = 200;
/** 26 July 2024, which the templates of Llama 3 fall back to, in the letters of strftime. */
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
