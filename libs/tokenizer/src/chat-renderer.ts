/**
 * Conversations as token ids, by the model's own chat template.
 *
 * C1: Only the first prompt is rendered whole. A later prompt is the ids so far, verbatim, and the ids of the text
 *     that the template puts after the answer: `template(all messages) - (shown before + answer)`. So what stands
 *     between turns is what the template says, and sampled text is never tokenized.
 * C2: That difference exists only where the template leaves earlier turns as they were. Some do not (a reasoning model's
 *     template that drops earlier thoughts): then `extend` says so, and the caller starts a new sample.
 * C3: The same messages give the same prompt on every day: where a template asks for the date, it is told a fixed one.
 */

import { describeError } from "@hone/core";
import { BoundedTemplate } from "./bounded-template.ts";
import { ChatTemplateError, TemplateLimitError } from "./errors.ts";
import type { Tokenizer } from "./tokenizer.ts";

/** One message of a conversation, in the shape that chat templates read. */
export interface ChatMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string;
}

/** What the model was shown first. */
export interface RenderedPrompt {
  readonly text: string;
  readonly ids: readonly number[];
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
}

export class ChatRenderer {
  readonly tokenizer: Tokenizer;
  readonly #template: BoundedTemplate;

  /**
   * @throws {ChatTemplateError} when the tokenizer has no chat template, one that cannot be parsed, or one that takes
   * more than a rendering may for a word.
   */
  constructor(tokenizer: Tokenizer) {
    this.tokenizer = tokenizer;
    if (tokenizer.chatTemplate === undefined) {
      throw new ChatTemplateError("the tokenizer must have a chat template", "absent");
    }
    try {
      this.#template = new BoundedTemplate(tokenizer.chatTemplate);
    } catch (error) {
      const begin = JSON.stringify(tokenizer.chatTemplate.slice(0, MAX_SHOWN_CHARACTERS));
      throw new ChatTemplateError(`its chat template must be Jinja (${describeError(error)})`, begin, {
        cause: error,
      });
    }
    this.#probe();
  }

  /**
   * The whole prompt, up to where the model starts to write.
   * @throws {ChatTemplateError} when the template refuses the messages.
   */
  render(messages: readonly ChatMessage[]): RenderedPrompt {
    const text = this.#renderText(messages);
    return { text, ids: this.tokenizer.encode(text) };
  }

  /**
   * The next prompt of a conversation (C1).
   * @param shownText what the model was shown before it answered.
   * @param messages the whole conversation: those shown, the answer, and at least one more.
   * @throws {ChatTemplateError} when the template refuses the messages.
   */
  extend(shownText: string, answer: RenderedAnswer, messages: readonly ChatMessage[]): RenderedExtension {
    const text = this.#renderText(messages);
    if (!text.startsWith(shownText)) return { kind: "rewrites" };
    const answerEnd = endOfAnswer(text, shownText.length, answer.content);
    if (answerEnd === undefined) return { kind: "rewrites" };
    let addedText = text.slice(answerEnd);
    if (answer.stopTokenId !== undefined) {
      // The stop token was sampled, so it stands in the ids already.
      const stopToken = this.tokenizer.tokenOf(answer.stopTokenId);
      if (stopToken !== undefined && addedText.startsWith(stopToken))
        addedText = addedText.slice(stopToken.length);
    }
    return { kind: "extends", text, addedText, addedIds: this.tokenizer.encode(addedText) };
  }

  /** A bomb is found before the first conversation. What else a template refuses is for conversations to find out. */
  #probe(): void {
    try {
      this.#renderText([{ role: "user", content: "Hello" }]);
    } catch (error) {
      if (error instanceof ChatTemplateError && error.cause instanceof TemplateLimitError) throw error;
    }
  }

  #renderText(messages: readonly ChatMessage[]): string {
    try {
      return this.#template.render(
        { ...this.tokenizer.specialTokens, messages, add_generation_prompt: true },
        { strftime_now: fixedDate }, // C3
      );
    } catch (error) {
      const roles = messages.map((message) => message.role).join(", ");
      throw new ChatTemplateError(
        `its chat template refuses the messages (${describeError(error)})`,
        roles === "" ? "no messages" : roles,
        { cause: error },
      );
    }
  }
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
