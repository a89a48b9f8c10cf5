/**
 * One attempt's session: the calls of an external agent, each of which is a turn of the attempt's record.
 *
 * N1: the calls of a role that does not learn are recorded and not trained; those that another model answers have no tokens
 *     of the policy.
 * N2: the run's own sampling parameters are used, whatever an agent asks for, as logprobs must be those of the distribution
 *     that is trained. Calls that ask for others are counted.
 * N3: a call's seed is derived from its context and from how often the same context came before, and not from the order in
 *     which parallel calls arrive, so a repeated attempt samples the same. A seed that the agent gives replaces the count.
 * N4: after `close` no call is accepted, and those under way end.
 * N5: the answers to a call that asks for several are sampled in parallel, each as a turn of its own. If one of them fails, so
 *     does the call, and the others end.
 */

import { createHash } from "node:crypto";
import {
  CallKind,
  callModel,
  DRIFT_KINDS,
  type EnvironmentInfo,
  formatOf,
  ModelCallAbandonedError,
  type ModelSession,
  type Policy,
  streamAnswer,
} from "@hone/agents";
import { deriveSeed, secretCheck } from "@hone/core";
import type { SamplingParameters } from "@hone/rl";
import { counterOf, Instrument } from "@hone/telemetry";
import { type ChatMessage, StopScanner } from "@hone/tokenizer";
import { allOrNone } from "./all-or-none.ts";
import { demandsOf } from "./demands.ts";
import {
  NoSuchTurnError,
  RewardsNotTakenError,
  SessionBusyError,
  SessionOverError,
  UnknownRoleError,
} from "./errors.ts";
import { type Made, makeReply } from "./make-reply.ts";
import {
  MAX_CALLS_AT_ONCE,
  type ReplyCheck,
  type ReplyEvent,
  type SessionReply,
  type SessionRequest,
} from "./session-call.ts";
import { type ShownMessages, ToldMessages } from "./told-messages.ts";

/** Answered calls, by how their messages relate to the record. */
const answeredCalls = counterOf(Instrument.sessionCalls);

/** A role in which an agent calls the model. */
export interface OpenRole {
  /** Undefined where the session has no roles. */
  readonly name: string | undefined;
  readonly learns: boolean;
  /** The policy that answers; undefined = the run's own. */
  readonly policy: Policy | undefined;
}

export interface OpenSessionParts {
  readonly id: string;
  /** The session's credential. */
  readonly key: string;
  readonly model: ModelSession;
  /** Roles by name; empty = one role without a name, which learns. */
  readonly roles: ReadonlyMap<string, OpenRole>;
  readonly takesRewards: boolean;
  /** Seed of the rollout, from which the seeds of calls are derived (N3). */
  readonly seed: number;
  /** The run's sampling parameters (N2). */
  readonly sampling: SamplingParameters;
  /** Called when a call begins; what it returns is called when the call ends. */
  readonly onCall?: (() => () => void) | undefined;
}

/** A reward from outside. */
export interface GivenReward {
  readonly value: number;
  /** Index of its turn; undefined = the latest. */
  readonly turn?: number | undefined;
  /** The role that earned it, in place of a turn; undefined = the rollout as a whole earned it. */
  readonly role?: string | undefined;
}

export interface AnswerOptions {
  /** Id of the answers. */
  readonly replyId: string;
  /** The role that the URL names; undefined = the request's model names it. */
  readonly role: string | undefined;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
  /**
   * Gets the answers while they are generated, each in the order of {@link ReplyEvent}; absent = they are not streamed.
   * @param answer the index of the answer, for calls that ask for several.
   */
  readonly onEvent?: ((event: ReplyEvent, answer: number) => void) | undefined;
}

const SOLE_ROLE: OpenRole = { name: undefined, learns: true, policy: undefined };

export class OpenSession {
  readonly id: string;
  readonly takesRewards: boolean;
  /** Whether a text is the session's credential. */
  readonly isKey: (given: string) => boolean;
  /** Sum of the rewards that were given through it. */
  totalReward = 0;
  readonly #parts: OpenSessionParts;
  readonly #over = new AbortController();
  readonly #conversations = new Map<string, readonly ChatMessage[]>();
  readonly #told = new ToldMessages();
  /** How many calls each context has had (N3). */
  readonly #asked = new Map<string, number>();
  readonly #counts = new Map<string, number>();
  #numCalls = 0;
  #atWork = 0;

  constructor(parts: OpenSessionParts) {
    this.id = parts.id;
    this.takesRewards = parts.takesRewards;
    this.isKey = secretCheck(parts.key);
    this.#parts = parts;
  }

  /** Names that calls may give as their model; empty = any. */
  get roleNames(): string[] {
    return [...this.#parts.roles.keys()];
  }

  /** The conversation up to an answer of this session, including the answer. */
  conversationUpTo(replyId: string): readonly ChatMessage[] | undefined {
    return this.#conversations.get(replyId);
  }

  /**
   * Answers a call.
   * @returns as many answers as it asks for.
   * @throws {UnknownRoleError} for an unknown role.
   * @throws {SessionOverError | SessionBusyError} and the errors of a model call.
   */
  async answer(request: SessionRequest, options: AnswerOptions): Promise<readonly SessionReply[]> {
    const role = this.#roleOf(options.role, request.model);
    const { numAnswers } = request;
    if (this.#over.signal.aborted) throw new SessionOverError(this.id);
    if (this.#atWork + numAnswers > MAX_CALLS_AT_ONCE) throw new SessionBusyError(MAX_CALLS_AT_ONCE);
    this.#atWork += numAnswers;
    const endCall = this.#parts.onCall?.();
    try {
      const demands = demandsOf(request);
      const shown = this.#told.shownFor(request.messages, demands);
      const made = await allOrNone(numAnswers, (index, given) =>
        this.#ask(request, shown, role, index, {
          ...options,
          signal: AbortSignal.any([given, options.signal]),
        }),
      );
      this.#keep(options.replyId, request, made);
      if (demands.length > 0) {
        for (const { message } of made) this.#told.keep(request.messages, shown, message);
      }
      this.#count(made, role.name, request);
      for (const [index, { reply }] of made.entries()) options.onEvent?.({ kind: "end", reply }, index);
      return made.map(({ reply }) => reply);
    } catch (error) {
      if (this.#over.signal.aborted) throw new SessionOverError(this.id);
      if (error instanceof ModelCallAbandonedError) this.#add("session_abandoned", 1);
      throw error;
    } finally {
      this.#atWork -= numAnswers;
      endCall?.();
    }
  }

  /**
   * Adds to the reward of a turn or of a role.
   * @throws {NoSuchTurnError | RewardsNotTakenError | SessionOverError}
   */
  addReward(reward: GivenReward): void {
    if (this.#over.signal.aborted) throw new SessionOverError(this.id);
    if (!this.takesRewards) throw new RewardsNotTakenError();
    this.grantRewards([reward]);
  }

  /**
   * Adds rewards from someone who may give them, all or none.
   * @throws {NoSuchTurnError | SessionOverError}
   */
  grantRewards(rewards: readonly GivenReward[]): void {
    if (this.#over.signal.aborted) throw new SessionOverError(this.id);
    const last = this.#parts.model.lastTurn?.index ?? -1;
    for (const { turn, role } of rewards) {
      if (role === undefined && last < (turn ?? 0)) throw new NoSuchTurnError(turn);
    }
    for (const { value, turn, role } of rewards) {
      if (role !== undefined) {
        this.#parts.model.addRoleReward(role, value);
        continue;
      }
      this.#parts.model.addReward(value, turn);
      this.totalReward += value;
    }
  }

  /** Counts of calls, by how their messages relate to the record, and of calls that asked for other sampling parameters. */
  metrics(): Readonly<Record<string, number>> {
    const drift = Object.fromEntries(DRIFT_KINDS.map((kind) => [`drift_${kind}`, 0]));
    return {
      session_calls: this.#numCalls,
      session_abandoned: 0,
      ...drift,
      ...Object.fromEntries(this.#counts),
    };
  }

  /** N4 */
  close(): void {
    this.#over.abort(new SessionOverError(this.id));
  }

  async #ask(
    request: SessionRequest,
    shown: ShownMessages,
    role: OpenRole,
    index: number,
    { signal, onEvent: onAny }: AnswerOptions,
  ): Promise<Made> {
    const { model } = this.#parts;
    const onEvent = onAny === undefined ? undefined : (event: ReplyEvent) => onAny(event, index);
    const format = formatOf(model.renderer);
    const tools = request.toolChoice === "none" ? [] : request.tools;
    const call = (onTokens?: (tokenIds: readonly number[]) => void) =>
      callModel(model, {
        messages: shown.messages,
        tools,
        format,
        options: {
          maxNewTokens: request.maxNewTokens,
          stopTexts: request.stopTexts,
          seedOf: (promptIds) => this.#seedOf(promptIds, request.seed, index),
          signal: AbortSignal.any([signal, this.#over.signal]),
          learns: role.learns,
          role: role.name,
          mayShorten: true,
          ...(role.policy !== undefined && { policy: role.policy }),
          ...(onTokens !== undefined && { onTokens }),
          onPrompt: (inputTokens) => onEvent?.({ kind: "begin", inputTokens }),
        },
      });
    if (onEvent === undefined) {
      const { answer, message } = await call();
      return makeReply(model.renderer, request, tools, { answer, message });
    }
    const scanner = new StopScanner(request.stopTexts);
    let told = "";
    let isOver = false;
    const tell = (text: string) => {
      told += text;
      if (text !== "") onEvent({ kind: "text", text });
    };
    for await (const piece of streamAnswer(model.renderer.tokenizer, format, tools, call)) {
      if (piece.kind === "text") {
        if (isOver) continue;
        const scanned = scanner.push(piece.text);
        isOver = scanned.isStopped;
        tell(scanned.text);
        continue;
      }
      const { answer, message } = piece.result;
      const made = makeReply(model.renderer, request, tools, { answer, message });
      // The rest of the text: what the scanner held back, and what comes after the calls.
      const whole = message.fullContent ?? message.content;
      if (whole.startsWith(told)) tell(whole.slice(told.length));
      for (const [at, { id, name, argumentsJson }] of made.reply.calls.entries()) {
        onEvent({ kind: "call_begin", index: at, id, name });
        onEvent({ kind: "call_arguments", index: at, json: argumentsJson });
        onEvent({ kind: "call_end", index: at });
      }
      return { ...made, reply: { ...made.reply, text: told } };
    }
    throw new TypeError("a streamed answer ended without its end");
  }

  /** N3 */
  #seedOf(promptIds: readonly number[], given: number | undefined, index: number): number {
    const digest = createHash("sha256").update(Uint32Array.from(promptIds)).digest("hex");
    const { seed } = this.#parts;
    if (given !== undefined) return deriveSeed(seed, digest, "given", given, ...(index === 0 ? [] : [index]));
    const count = this.#asked.get(digest) ?? 0;
    this.#asked.set(digest, count + 1);
    return deriveSeed(seed, digest, count);
  }

  #roleOf(named: string | undefined, model: string): OpenRole {
    const { roles } = this.#parts;
    if (roles.size === 0 && named === undefined) return SOLE_ROLE;
    const name = named ?? (roles.has(model) || roles.size > 1 ? model : [...roles.keys()][0]!);
    const role = roles.get(name);
    if (role !== undefined) return role;
    throw new UnknownRoleError(name, this.roleNames);
  }

  #keep(replyId: string, request: SessionRequest, [first]: readonly Made[]): void {
    if (first !== undefined) this.#conversations.set(replyId, [...request.messages, first.message]);
  }

  /** Counts a call, and describes it in the info of its turns, which the page shows and judges can read. */
  #count(made: readonly Made[], role: string | undefined, { sampling }: SessionRequest): void {
    this.#numCalls++;
    const kinds = made.map(({ answer }) => answer.turn.kind);
    // One of several answers continues the sample, and the others become branches, which the call asked for.
    const kind = kinds.find((each) => each === CallKind.extension) ?? kinds[0] ?? CallKind.first;
    const isDrift = kind !== CallKind.first && kind !== CallKind.extension;
    answeredCalls.of({ kind }).add();
    if (isDrift) this.#add(`drift_${kind}`, 1);
    if (role !== undefined) this.#add(`calls_of_${role}`, 1);
    const own = this.#parts.sampling;
    const isOther = (["temperature", "topP", "topK"] as const).some(
      (name) => sampling[name] !== undefined && sampling[name] !== own[name],
    );
    if (isOther) this.#add("session_sampling_ignored", 1); // N2
    for (const [index, { answer, reply }] of made.entries()) {
      for (const { demand, problem } of reply.checks) {
        this.#add(`${demand}_${problem === undefined ? "met" : "unmet"}`, 1);
      }
      answer.turn.info = {
        ...answer.turn.info,
        ...(isDrift && { drift: kind }),
        ...(role !== undefined && { role }),
        ...(made.length > 1 && { answer: index }),
        ...infoOf(reply.checks),
      };
    }
  }

  #add(name: string, value: number): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + value);
  }
}

function infoOf(checks: readonly ReplyCheck[]): EnvironmentInfo {
  return Object.fromEntries(checks.map(({ demand, problem }) => [demand, problem ?? "met"]));
}
