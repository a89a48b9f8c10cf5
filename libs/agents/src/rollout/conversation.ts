/**
 * The exact token record of one attempt.
 *
 * T1: Sampled tokens are kept verbatim and enter later prompts verbatim; text that the model wrote is never tokenized again.
 * T2: A call whose messages extend those of an earlier call continues its sample. Otherwise, or if the chat template would
 *     change what was shown before, a new sample starts.
 * T3: A call that continues from an earlier point of a sample (a branch) starts a new sample with the tokens up to that point,
 *     whose loss mask is 0: every sampled token is trained once, in the sample that it was sampled for.
 * T4: The engine sees exactly the prefix of the sample that its tokens are then appended to.
 * T5: Tokens sampled for a role that does not learn are treated like a prompt. A sample in which nothing is trained is left
 *     out of the record, and its turns refer to no sample.
 * T6: A sample holds the tokens of one of the roles that the run names. Where another role goes on from its messages, a new
 *     sample starts with the tokens up to there, as in a branch (T3).
 */

import { isDeepStrictEqual } from "node:util";
import { FinishReason, type Sample, type VersionSpan } from "@hone/rl";
import type { ChatMessage, ChatRenderer, ChatTool, RenderedAnswer } from "@hone/tokenizer";
import type { EnvironmentInfo } from "../definitions/environment.ts";
import { CallKind, kindOfDrift, sharedMessages } from "../model/call-kind.ts";
import type { PolicyGeneration } from "../policies/policy.ts";

/** One model call with its answer and the environment's reaction. */
export interface RecordedTurn {
  readonly index: number;
  /** How its messages relate to the record before it. */
  readonly kind: CallKind;
  /** Index of its sample; the number of samples if it is in none, because nothing of it is trained. */
  readonly sample: number;
  /** Its sampled tokens are at [begin, end) of the sample. */
  readonly sampledBegin: number;
  readonly sampledEnd: number;
  /** The text that the model was shown since the previous turn of the sample. */
  readonly promptText: string;
  readonly responseText: string;
  readonly finishReason: FinishReason;
  /** Reward of the environment and the tools; undefined = none was given. */
  reward: number | undefined;
  /** Info of the environment and of the call itself, such as its role. */
  info: EnvironmentInfo | undefined;
  /** The actions that the environment was given after this call, in order; absent = none. */
  actions?: string[];
}

/** A call that is ready to be sent. */
export interface PreparedCall {
  /** Whole context, verbatim. */
  readonly promptIds: readonly number[];
  /** Identifies the conversation: calls that continue the same sample share it. */
  readonly conversation: number;
  readonly kind: CallKind;
  readonly tools: readonly ChatTool[];
  readonly messages: readonly ChatMessage[];
  /** The context as text, and the new part of it. */
  readonly shownText: string;
  readonly addedText: string;
  /** The role of the sample (T6); empty = none that the run names. */
  readonly role: string;
  /** The sample that the call continues, provided it still has `tokenCount` tokens; undefined = a new sample (T2, T3). */
  readonly continues: { readonly sample: UnfinishedSample; readonly tokenCount: number } | undefined;
}

/** A point after an answer from which a conversation can continue. */
interface Junction {
  /** Number of messages up to here, including the answer. */
  readonly messageCount: number;
  readonly tokenCount: number;
  /** The context before the answer, as text. */
  readonly shownText: string;
  readonly answer: RenderedAnswer;
}

/**
 * A sample that calls can still continue. Thousands of rollouts keep theirs in memory, so arrays have no spare room, and the
 * loss mask is made only for the record.
 */
interface UnfinishedSample {
  readonly index: number;
  readonly role: string;
  tokenIds: readonly number[];
  /** Half-open ranges of sampled tokens that are trained. */
  readonly sampled: { readonly begin: number; readonly end: number }[];
  logprobs: readonly number[];
  readonly versions: VersionSpan[];
  /** The whole conversation, including the last answer. */
  messages: readonly ChatMessage[];
  /** The tools that the last call showed. */
  tools: readonly ChatTool[];
  readonly junctions: Junction[];
}

/** Stands for "no sample" until the record is put together. */
const NO_SAMPLE = -1;

/** The record of a whole conversation. */
export interface ConversationRecord {
  /** The training rows, in the order in which they were started. */
  readonly samples: Sample[];
  readonly turns: RecordedTurn[];
}

/** The message that an answer is read as. */
export type ReadAnswerMessage = Pick<ChatMessage, "content" | "tool_calls">;

export interface CommitOptions {
  /**
   * Reads the message from the text, if the message can differ from the text.
   * @param written the whole text that the model wrote, without the stop token.
   * @param content the same text without special tokens.
   */
  readonly read?: ((written: string, content: string) => ReadAnswerMessage) | undefined;
  /** Whether the sampled tokens are trained (T5). @default true */
  readonly learns?: boolean | undefined;
}

export class Conversation {
  readonly turns: RecordedTurn[] = [];
  readonly renderer: ChatRenderer;
  readonly #samples: UnfinishedSample[] = [];

  constructor(renderer: ChatRenderer) {
    this.renderer = renderer;
  }

  /**
   * Determines the context of a call.
   * @param role the role that calls, if the run names it (T6).
   * @throws {ChatTemplateError} when the template refuses the messages.
   */
  prepare(given: readonly ChatMessage[], tools: readonly ChatTool[] = [], role = ""): PreparedCall {
    const from = this.#junctionOf(given);
    let rewritten: CallKind | undefined;
    if (from !== undefined) {
      const { sample, junction } = from;
      // The messages of the record have the answers as the model wrote them.
      const messages = [
        ...sample.messages.slice(0, junction.messageCount),
        ...given.slice(junction.messageCount),
      ];
      const extension = this.renderer.extend(junction.shownText, junction.answer, messages, tools);
      const isLast = junction.tokenCount === sample.tokenIds.length && sample.role === role;
      if (extension.kind === "extends") {
        return {
          promptIds: [...sample.tokenIds.slice(0, junction.tokenCount), ...extension.addedIds],
          conversation: isLast ? sample.index : this.#samples.length,
          kind: isLast ? CallKind.extension : this.#kindOf(given),
          tools,
          messages,
          shownText: extension.text,
          addedText: extension.addedText,
          role,
          continues: isLast ? { sample, tokenCount: junction.tokenCount } : undefined,
        };
      }
      if (isLast) rewritten = isDeepStrictEqual(sample.tools, tools) ? CallKind.template : CallKind.tools;
    }
    const prompt = this.renderer.render(given, tools);
    return {
      promptIds: prompt.tokenIds,
      conversation: this.#samples.length,
      kind: rewritten ?? this.#kindOf(given),
      tools,
      messages: given,
      shownText: prompt.text,
      addedText: prompt.text,
      role,
      continues: undefined,
    };
  }

  /** Appends the tokens that were sampled for a prepared call (T4); there must be at least one. */
  commit(call: PreparedCall, generation: PolicyGeneration, options: CommitOptions = {}): RecordedTurn {
    const { read, learns = true } = options;
    const { tokenizer } = this.renderer;
    const { tokenIds, finishReason } = generation;
    const sample = this.#sampleFor(call);
    const sampledBegin = call.promptIds.length;
    sample.tokenIds = call.promptIds.concat(tokenIds); // T4
    if (learns) {
      sample.sampled.push({ begin: sampledBegin, end: sample.tokenIds.length });
      sample.logprobs = sample.logprobs.concat(generation.logprobs);
      appendVersions(sample.versions, generation.versions);
    }

    const stopTokenId = finishReason === FinishReason.stop ? tokenIds.at(-1) : undefined;
    const answerIds = stopTokenId === undefined ? tokenIds : tokenIds.slice(0, -1);
    const content = tokenizer.decode(answerIds, { skipSpecialTokens: true });
    const written = read === undefined ? content : tokenizer.decode(answerIds);
    const message: ChatMessage =
      read === undefined
        ? { role: "assistant", content }
        : { role: "assistant", ...read(written, content), written };
    sample.messages = [...call.messages, message];
    sample.tools = call.tools;
    sample.junctions.push({
      messageCount: sample.messages.length,
      tokenCount: sample.tokenIds.length,
      shownText: call.shownText,
      answer: { content: written, stopTokenId, messageIndex: call.messages.length },
    });
    // If another call continued the sample in the meantime, this call has become a branch.
    const isOvertaken = call.continues !== undefined && call.continues.sample !== sample;
    const turn: RecordedTurn = {
      index: this.turns.length,
      kind: isOvertaken ? CallKind.branch : call.kind,
      sample: sample.index,
      sampledBegin,
      sampledEnd: sample.tokenIds.length,
      promptText: call.addedText,
      // If there are calls, the text that was written says more than the message.
      responseText: message.tool_calls === undefined ? message.content : content,
      finishReason,
      reward: undefined,
      info: undefined,
    };
    this.turns.push(turn);
    return turn;
  }

  /**
   * Records a call that the agent gave up before it got the answer: a turn whose tokens are in no sample, because they had no
   * effect.
   * @param tokenIds the tokens that had been reported until then.
   */
  abandon(call: PreparedCall, tokenIds: readonly number[]): RecordedTurn {
    const turn: RecordedTurn = {
      index: this.turns.length,
      kind: call.kind,
      sample: NO_SAMPLE,
      sampledBegin: 0,
      sampledEnd: 0,
      promptText: call.addedText,
      responseText: this.renderer.tokenizer.decode(tokenIds, { skipSpecialTokens: true }),
      finishReason: FinishReason.aborted,
      reward: undefined,
      info: undefined,
    };
    this.turns.push(turn);
    return turn;
  }

  /** The record so far. */
  record(): ConversationRecord {
    const kept = this.#samples.filter(({ sampled }) => sampled.length > 0); // T5
    const placeOf = new Map(kept.map(({ index }, place) => [index, place]));
    const samples = kept.map(({ tokenIds, sampled, logprobs, versions, role }) => {
      const lossMask = new Uint8Array(tokenIds.length);
      for (const { begin, end } of sampled) lossMask.fill(1, begin, end);
      return { tokenIds, lossMask, logprobs, versions, ...(role !== "" && { role }) };
    });
    const turns = this.turns.map((turn) => {
      const sample = placeOf.get(turn.sample);
      if (sample === turn.sample) return turn;
      if (sample !== undefined) return { ...turn, sample };
      return { ...turn, sample: kept.length, sampledBegin: 0, sampledEnd: 0 };
    });
    return { samples, turns };
  }

  /** The furthest point of any sample that the messages continue from. */
  #junctionOf(
    messages: readonly ChatMessage[],
  ): { sample: UnfinishedSample; junction: Junction } | undefined {
    let best: { sample: UnfinishedSample; junction: Junction } | undefined;
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

  /** The kind of a call that does not continue a sample at its end. */
  #kindOf(given: readonly ChatMessage[]): CallKind {
    let best: { readonly known: readonly ChatMessage[]; readonly shared: number } | undefined;
    for (const { messages } of this.#samples) {
      const shared = sharedMessages(messages, given);
      // If several share as many messages, the longest counts: the others are its beginnings.
      const isBetter =
        best === undefined ||
        shared > best.shared ||
        (shared === best.shared && messages.length >= best.known.length);
      if (isBetter) best = { known: messages, shared };
    }
    return best === undefined ? CallKind.first : kindOfDrift(best.known, given, best.shared);
  }

  /** The sample for a call's tokens. If another call has continued the sample in the meantime, a new one starts (T3). */
  #sampleFor(call: PreparedCall): UnfinishedSample {
    const { continues, role } = call;
    if (continues !== undefined && continues.sample.tokenIds.length === continues.tokenCount) {
      return continues.sample;
    }
    const started: UnfinishedSample = {
      index: this.#samples.length,
      role,
      tokenIds: [],
      sampled: [],
      logprobs: [],
      versions: [],
      messages: [],
      tools: [],
      junctions: [],
    };
    this.#samples.push(started);
    return started;
  }
}

/** Appends spans and joins neighbours that have the same version. */
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
