/**
 * The exact token record of one attempt.
 *
 * T1: Sampled tokens are kept verbatim and enter a later prompt verbatim; no text that the model wrote is tokenized.
 * T2: A call whose messages extend those of an earlier call goes on with its sample. Otherwise, or where the chat
 *     template would change what was shown before, a new sample starts.
 * T3: A call that goes on from an earlier point of a sample (a branch) starts a new sample with the tokens up to
 *     there, unmasked: every sampled token is trained once, in the sample that it was sampled for.
 * T4: The engine sees exactly the prefix of the sample that its tokens are then appended to.
 */

import { isDeepStrictEqual } from "node:util";
import type { Sample, VersionSpan } from "@hone/rl";
import type { ChatMessage, ChatRenderer, ChatTool, RenderedAnswer } from "@hone/tokenizer";
import type { EnvironmentInfo } from "./environment.ts";
import { FinishReason, type Generation } from "./policy.ts";

/** One model call with what followed it. */
export interface RecordedTurn {
  readonly index: number;
  /** Which sample holds it. */
  readonly sample: number;
  /** Its sampled tokens stand at [begin, end) of the sample. */
  readonly sampledBegin: number;
  readonly sampledEnd: number;
  /** What the model was shown since the turn before it in the sample. */
  readonly promptText: string;
  readonly responseText: string;
  readonly finishReason: FinishReason;
  /** Given by the environment; undefined = none was given. */
  reward: number | undefined;
  /** Said by the environment. */
  info: EnvironmentInfo | undefined;
}

/** A call that is ready to be sent. */
export interface PreparedCall {
  /** Whole context, verbatim. */
  readonly contextIds: readonly number[];
  /** Names the conversation: calls that go on with one sample share it. */
  readonly conversation: number;
  readonly messages: readonly ChatMessage[];
  /** The context as text, and the part of it that is new. */
  readonly shownText: string;
  readonly addedText: string;
  /** The sample that the call goes on with as long as it still ends where it did; undefined = a new one (T2, T3). */
  readonly continues: { readonly sample: OpenSample; readonly tokenCount: number } | undefined;
}

/** A point after an answer, from where a conversation can go on. */
interface Junction {
  /** Messages up to here, the answer included. */
  readonly messageCount: number;
  readonly tokenCount: number;
  /** What was shown before the answer. */
  readonly shownText: string;
  readonly answer: RenderedAnswer;
}

/** Thousands of rollouts wait with their samples in memory: arrays are as long as what they hold, and the mask is made last. */
interface OpenSample {
  readonly index: number;
  tokenIds: readonly number[];
  /** Half-open ranges of sampled tokens. */
  readonly sampled: { readonly begin: number; readonly end: number }[];
  logprobs: readonly number[];
  readonly versions: VersionSpan[];
  /** The whole conversation, the last answer included. */
  messages: readonly ChatMessage[];
  readonly junctions: Junction[];
}

export class Conversation {
  readonly turns: RecordedTurn[] = [];
  readonly renderer: ChatRenderer;
  readonly #samples: OpenSample[] = [];

  constructor(renderer: ChatRenderer) {
    this.renderer = renderer;
  }

  /**
   * Finds the context of a call.
   * @throws {ChatTemplateError} when the template refuses the messages.
   */
  prepare(given: readonly ChatMessage[], tools: readonly ChatTool[] = []): PreparedCall {
    const from = this.#junctionOf(given);
    if (from !== undefined) {
      const { sample, junction } = from;
      // Those of the record carry their answers as they were written.
      const messages = [
        ...sample.messages.slice(0, junction.messageCount),
        ...given.slice(junction.messageCount),
      ];
      const extension = this.renderer.extend(junction.shownText, junction.answer, messages, tools);
      if (extension.kind === "extends") {
        const isLast = junction.tokenCount === sample.tokenIds.length;
        return {
          contextIds: [...sample.tokenIds.slice(0, junction.tokenCount), ...extension.addedIds],
          conversation: isLast ? sample.index : this.#samples.length,
          messages,
          shownText: extension.text,
          addedText: extension.addedText,
          continues: isLast ? { sample, tokenCount: junction.tokenCount } : undefined,
        };
      }
    }
    const prompt = this.renderer.render(given, tools);
    return {
      contextIds: prompt.ids,
      conversation: this.#samples.length,
      messages: given,
      shownText: prompt.text,
      addedText: prompt.text,
      continues: undefined,
    };
  }

  /**
   * Appends what was sampled for a prepared call (T4). At least one token.
   * @param read what the answer says as a message, where it may hold calls of tools; the text that it is given has all that
   * the model wrote but the stop token. Absent = the answer is text.
   */
  commit(
    call: PreparedCall,
    generation: Generation,
    read?: (written: string) => Pick<ChatMessage, "content" | "tool_calls">,
  ): RecordedTurn {
    const { tokenizer } = this.renderer;
    const { tokenIds, finishReason } = generation;
    const sample = this.#sampleFor(call);
    const sampledBegin = call.contextIds.length;
    sample.tokenIds = call.contextIds.concat(tokenIds); // T4
    sample.sampled.push({ begin: sampledBegin, end: sample.tokenIds.length });
    sample.logprobs = sample.logprobs.concat(generation.logprobs);
    appendVersions(sample.versions, generation.versions);

    const stopTokenId = finishReason === FinishReason.stop ? tokenIds.at(-1) : undefined;
    const answerIds = stopTokenId === undefined ? tokenIds : tokenIds.slice(0, -1);
    const content = tokenizer.decode(answerIds, { skipSpecialTokens: true });
    const written = read === undefined ? content : tokenizer.decode(answerIds);
    const message: ChatMessage =
      read === undefined ? { role: "assistant", content } : { role: "assistant", ...read(written), written };
    sample.messages = [...call.messages, message];
    sample.junctions.push({
      messageCount: sample.messages.length,
      tokenCount: sample.tokenIds.length,
      shownText: call.shownText,
      answer: { content: written, stopTokenId, messageIndex: call.messages.length },
    });
    const turn: RecordedTurn = {
      index: this.turns.length,
      sample: sample.index,
      sampledBegin,
      sampledEnd: sample.tokenIds.length,
      promptText: call.addedText,
      // Around calls, what was written says more than the message.
      responseText: message.tool_calls === undefined ? message.content : content,
      finishReason,
      reward: undefined,
      info: undefined,
    };
    this.turns.push(turn);
    return turn;
  }

  /** The training rows, in the order in which they were started. */
  samples(): Sample[] {
    return this.#samples.map(({ tokenIds, sampled, logprobs, versions }) => {
      const lossMask = new Uint8Array(tokenIds.length);
      for (const { begin, end } of sampled) lossMask.fill(1, begin, end);
      return { tokenIds, lossMask, logprobs, versions };
    });
  }

  /** The furthest point of any sample that the messages go on from. */
  #junctionOf(messages: readonly ChatMessage[]): { sample: OpenSample; junction: Junction } | undefined {
    let best: { sample: OpenSample; junction: Junction } | undefined;
    for (let index = this.#samples.length - 1; index >= 0; index--) {
      const sample = this.#samples[index]!;
      const shared = sharedMessages(sample.messages, messages);
      const junction = sample.junctions.findLast(
        ({ messageCount }) => messageCount <= shared && messageCount < messages.length,
      );
      if (junction !== undefined && (best === undefined || junction.tokenCount > best.junction.tokenCount)) {
        best = { sample, junction };
      }
    }
    return best;
  }

  /** The sample that a call's tokens go to; a call made while another went on with its sample branches off (T3). */
  #sampleFor(call: PreparedCall): OpenSample {
    const { continues } = call;
    if (continues !== undefined && continues.sample.tokenIds.length === continues.tokenCount) {
      return continues.sample;
    }
    const started: OpenSample = {
      index: this.#samples.length,
      tokenIds: [],
      sampled: [],
      logprobs: [],
      versions: [],
      messages: [],
      junctions: [],
    };
    this.#samples.push(started);
    return started;
  }
}

/** How many messages two conversations have in common from the start. */
function sharedMessages(a: readonly ChatMessage[], b: readonly ChatMessage[]): number {
  const most = Math.min(a.length, b.length);
  let count = 0;
  while (count < most && isSameMessage(a[count]!, b[count]!)) count++;
  return count;
}

function isSameMessage(a: ChatMessage, b: ChatMessage): boolean {
  if (a.role !== b.role || a.tool_call_id !== b.tool_call_id) return false;
  if (a.tool_calls === undefined && b.tool_calls === undefined) return a.content === b.content;
  // Around calls, frameworks trim.
  return a.content.trim() === b.content.trim() && isDeepStrictEqual(a.tool_calls, b.tool_calls);
}

/** Appends spans, joining neighbours of one version. */
function appendVersions(to: VersionSpan[], added: readonly VersionSpan[]): void {
  for (const span of added) {
    const last = to.at(-1);
    if (last?.version === span.version) {
      to[to.length - 1] = { version: last.version, tokenCount: last.tokenCount + span.tokenCount };
    } else if (span.tokenCount > 0) {
      to.push(span);
    }
  }
}
