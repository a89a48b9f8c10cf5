/**
 * The messages as the model is shown them, with the demands of calls (`demands.ts`) in words.
 *
 * M1: A demand is the end of the last message, also of a tool's answer. A system message would be no place for it: demands come
 *     and go with calls, and a changed beginning would start a new sample with each; and many templates refuse a system message
 *     later on. A further message of the user would be refused after a tool's answer by some, and makes others drop thoughts.
 * M2: The agent does not know of the words. In its later calls, which continue from an answer to a demand, they are put back, so
 *     that the conversation continues the recorded tokens.
 */

import { sharedMessages } from "@hone/agents";
import type { ChatMessage } from "@hone/tokenizer";
import type { ToldDemand } from "./demands.ts";

export interface ShownMessages {
  readonly messages: readonly ChatMessage[];
  /** The demands that are told in them. */
  readonly told: readonly string[];
}

/** A conversation up to an answer to a demand. */
interface Told {
  /** As the agent has it. */
  readonly given: readonly ChatMessage[];
  readonly shown: ShownMessages;
}

export class ToldMessages {
  readonly #answered: Told[] = [];

  /** @param given the messages of a call. */
  shownFor(given: readonly ChatMessage[], demands: readonly ToldDemand[]): ShownMessages {
    const before = this.#before(given);
    const told = before?.shown.told ?? [];
    const messages =
      before === undefined ? given : [...before.shown.messages, ...given.slice(before.given.length)];
    if (demands.length === 0) return { messages, told };
    const words = demands.map(({ text, reminder }) => (told.includes(text) ? reminder : text));
    return {
      messages: withWords(messages, words.join("\n")),
      told: [...new Set([...told, ...demands.map(({ text }) => text)])],
    };
  }

  /** Keeps an answer to a demand, for the calls that continue from it (M2). */
  keep(given: readonly ChatMessage[], shown: ShownMessages, answer: ChatMessage): void {
    this.#answered.push({
      given: [...given, answer],
      shown: { messages: [...shown.messages, answer], told: shown.told },
    });
  }

  /** The longest conversation that the messages continue. */
  #before(given: readonly ChatMessage[]): Told | undefined {
    let best: Told | undefined;
    for (const told of this.#answered) {
      const { length } = told.given;
      const isLonger = length >= (best?.given.length ?? 0) && length <= given.length;
      if (isLonger && sharedMessages(told.given, given) === length) best = told;
    }
    return best;
  }
}

/** M1. An answer is not changed: after one, the words are a message of the user. */
function withWords(messages: readonly ChatMessage[], words: string): readonly ChatMessage[] {
  const last = messages.at(-1);
  if (last === undefined || last.role === "assistant") return [...messages, { role: "user", content: words }];
  return [...messages.slice(0, -1), { ...last, content: `${last.content}\n\n${words}` }];
}
