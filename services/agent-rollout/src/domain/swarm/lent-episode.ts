/**
 * One attempt that a client plays: it waits for a client, is lent to one, and comes to exactly one end.
 *
 *   waiting ── lend ──▶ lent ── end ──▶ reported ── settle ──▶ settled (stored, or over after all)
 *      └──── giveUp ─────┴── abort, expired lease, giveUp ──▶ over
 *
 * E1: A report is taken once. The same report again gets the answer of the first one, another one is refused.
 * E2: What comes after the end of the lease is refused with the reason, and changes nothing.
 * E3: A report is answered only when the rollout's episode is stored, or is known not to count.
 * E4: The episode's key ends, aborts and renews it; the session's key only calls the model. So a program that is given the
 *     session alone can neither reward itself nor end its episode.
 */

import { randomBytes } from "node:crypto";
import type { AgentResult, AgentSession, AttemptClock, EpisodeOffer } from "@hone/agents";
import { Outcome, rolloutIdOf, type Slot, secretCheck } from "@hone/core";
import type { GivenReward } from "../sessions/open-session.ts";
import type { HostedSession } from "../sessions/session-host.ts";
import {
  EpisodeEndedError,
  EpisodeFailedError,
  EpisodeOver,
  EpisodeOverError,
  EpisodeReturnedError,
} from "./errors.ts";
import { Lease } from "./lease.ts";

const ID_BYTES = 16;
const KEY_BYTES = 32;

/** What an attempt gives for its episode. */
export interface LentEpisodeParts extends EpisodeOffer {
  readonly runId: string;
  readonly slot: Slot;
  readonly attempt: number;
  readonly clock: Pick<AttemptClock, "start" | "stop">;
  /** Opens the client's session. @param onCall is called when a call of the model begins, and returns what to call at its end. */
  readonly openSession: (onCall: () => () => void) => OpenedSession;
}

/** A session, and what its client is told of it. */
export interface OpenedSession {
  readonly hosted: HostedSession;
  readonly told: AgentSession;
}

/** What a client reports at the end. */
export interface EpisodeReport {
  readonly rewards: readonly GivenReward[];
  readonly outcome: "completed" | "truncated" | "agent_failed";
  /** Why the agent failed; empty = not given. */
  readonly reason: string;
  readonly metrics: Readonly<Record<string, number>>;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** What became of an episode whose end was reported. */
export type Settlement =
  | { readonly kind: "stored"; readonly outcome: Outcome; readonly reward: number }
  | { readonly kind: "over"; readonly error: EpisodeOverError };

/** What a client gets for its claim. */
export interface LentEpisodeFacts {
  readonly run: string;
  /** The rollout's id, as the page shows it. */
  readonly rollout: string;
  readonly split: string;
  readonly attempt: number;
  readonly episode: {
    readonly id: string;
    readonly url: string;
    readonly key: string;
    readonly leaseMs: number;
  };
  readonly session: AgentSession & { readonly openaiBaseUrl: string; readonly anthropicBaseUrl: string };
  readonly task: unknown;
}

type State =
  | { readonly kind: "waiting"; readonly parts: LentEpisodeParts }
  | {
      readonly kind: "lent";
      readonly parts: LentEpisodeParts;
      readonly lease: Lease;
      readonly session: OpenedSession;
      readonly onReturn: (why: EpisodeOver) => void;
    }
  | { readonly kind: "reported"; readonly fingerprint: string; readonly reward: number }
  | { readonly kind: "over"; readonly error: EpisodeOverError };

export class LentEpisode {
  readonly id = randomBytes(ID_BYTES).toString("hex");
  readonly runId: string;
  /** Whether a text is the episode's credential (E4). */
  readonly isKey: (given: string) => boolean;
  readonly #key = `hone-episode-${randomBytes(KEY_BYTES).toString("base64url")}`;
  readonly #baseUrl: string;
  /** Undefined once it is known, as an episode is remembered after its end and a result may be large. */
  #result: PromiseWithResolvers<AgentResult> | undefined = Promise.withResolvers<AgentResult>();
  readonly #settlement = Promise.withResolvers<Settlement>();
  #isSettled = false;
  #state: State;

  /** @param baseUrl address at which clients reach this process. */
  constructor(parts: LentEpisodeParts, baseUrl: string) {
    this.runId = parts.runId;
    this.isKey = secretCheck(this.#key);
    this.#baseUrl = baseUrl;
    this.#state = { kind: "waiting", parts };
  }

  /** Waits for what the client reports; for one caller, before anything else happens. @throws whatever ends the episode otherwise. */
  result(): Promise<AgentResult> {
    const promise = this.#result?.promise ?? Promise.reject(new TypeError("the episode is over already"));
    // The caller may not wait yet when it is rejected.
    promise.catch(() => undefined);
    return promise;
  }

  get isWaiting(): boolean {
    return this.#state.kind === "waiting";
  }

  get isLent(): boolean {
    return this.#state.kind === "lent";
  }

  /** Gives the episode that waits to a client. @param onReturn is called when the client vanishes or aborts, with why. */
  lend(onReturn: (why: EpisodeOver) => void): void {
    const { parts } = this.#waiting();
    const { leaseMs, clock } = parts;
    const lease = new Lease({
      leaseMs,
      clock,
      onExpired: () =>
        this.#return(
          EpisodeOver.leaseExpired,
          `its client gave no sign of life for ${leaseMs} ms, which is its lease`,
        ),
    });
    const session = parts.openSession(() => lease.enterCall());
    this.#state = { kind: "lent", parts, lease, session, onReturn };
  }

  /**
   * What its client is told; the same each time. Asking is a sign of life.
   * @throws {EpisodeOverError | EpisodeEndedError} when the client has it no more (E2).
   */
  facts(): LentEpisodeFacts {
    this.renew();
    const { parts, session } = this.#lent();
    const { told } = session;
    return {
      run: this.runId,
      rollout: rolloutIdOf(this.runId, parts.slot),
      split: parts.slot.split,
      attempt: parts.attempt,
      episode: {
        id: this.id,
        url: `${this.#baseUrl}/episodes/${this.id}`,
        key: this.#key,
        leaseMs: parts.leaseMs,
      },
      session: { ...told, openaiBaseUrl: `${told.url}/v1`, anthropicBaseUrl: told.url },
      task: parts.task,
    };
  }

  /** A sign of life of the client. @throws {EpisodeOverError | EpisodeEndedError} (E2) */
  renew(): { readonly leaseMs: number } {
    const { lease, parts } = this.#lent();
    lease.renew();
    // The attempt's time may have ended by what was charged.
    this.#lent();
    return { leaseMs: parts.leaseMs };
  }

  /**
   * Takes the client's report.
   * @param fingerprint the same for the same report (E1).
   * @returns what becomes of the episode (E3).
   * @throws {EpisodeOverError | EpisodeEndedError | NoSuchTurnError}
   */
  end(report: EpisodeReport, fingerprint: string): Promise<Settlement> {
    if (this.#state.kind === "reported") {
      if (this.#state.fingerprint !== fingerprint) throw new EpisodeEndedError();
      return this.#settlement.promise;
    }
    this.renew();
    const { lease, session } = this.#lent();
    const { rewards, outcome, metrics, metadata, reason } = report;
    session.hosted.session.grantRewards(rewards);
    const reward = session.hosted.session.totalReward;
    lease.end();
    session.hosted.close();
    this.#state = { kind: "reported", fingerprint, reward };
    if (outcome === "agent_failed") this.#result?.reject(new EpisodeFailedError(reason));
    else this.#result?.resolve({ metrics, metadata, isTruncated: outcome === "truncated" });
    this.#result = undefined;
    return this.#settlement.promise;
  }

  /**
   * Gives the episode back for another client. Doing it twice is the same as once.
   * @param reason what the client says; empty = nothing.
   * @throws {EpisodeOverError | EpisodeEndedError}
   */
  abort(reason: string): void {
    const state = this.#state;
    if (state.kind === "over" && state.error.why === EpisodeOver.aborted) return;
    this.#return(EpisodeOver.aborted, `its client gave it back${reason === "" ? "" : `: ${reason}`}`);
  }

  /** Ends the episode for a reason that has nothing to do with its client. */
  giveUp(error: unknown, why: EpisodeOver, reason: string): void {
    this.#end(new EpisodeOverError(why, reason), error);
  }

  /** The rollout's episode is stored with this outcome. */
  stored(outcome: Outcome, reason: string): void {
    if (this.#state.kind !== "reported") return;
    const counts =
      outcome === Outcome.completed || outcome === Outcome.truncated || outcome === Outcome.agentFailed;
    if (counts) this.#settle({ kind: "stored", outcome, reward: this.#state.reward });
    else this.lost(OVER_BY_OUTCOME[outcome] ?? EpisodeOver.attemptEnded, reason);
  }

  /** What was reported does not count after all. */
  lost(why: EpisodeOver, reason: string): void {
    if (this.#state.kind !== "reported" || this.#isSettled) return;
    const error = new EpisodeOverError(why, reason);
    this.#settle({ kind: "over", error });
    this.#state = { kind: "over", error };
  }

  #return(why: EpisodeOver, reason: string): void {
    const { parts, onReturn } = this.#lent();
    onReturn(why);
    this.#end(new EpisodeOverError(why, reason), new EpisodeReturnedError(reason, parts.freeReturns));
  }

  /** @param error for the client. @param cause for the attempt. */
  #end(error: EpisodeOverError, cause: unknown): void {
    const state = this.#state;
    if (state.kind === "reported" || state.kind === "over") return;
    if (state.kind === "lent") {
      state.lease.end();
      state.session.hosted.close();
    }
    this.#state = { kind: "over", error };
    this.#result?.reject(cause);
    this.#result = undefined;
  }

  #settle(settlement: Settlement): void {
    this.#isSettled = true;
    this.#settlement.resolve(settlement);
  }

  #waiting(): Extract<State, { kind: "waiting" }> {
    if (this.#state.kind === "waiting") return this.#state;
    throw new TypeError("only an episode that waits can be lent");
  }

  #lent(): Extract<State, { kind: "lent" }> {
    const state = this.#state;
    if (state.kind === "lent") return state;
    if (state.kind === "over") throw state.error;
    if (state.kind === "reported") throw new EpisodeEndedError();
    throw new TypeError("nobody has an episode that waits");
  }
}

const OVER_BY_OUTCOME: Readonly<Partial<Record<Outcome, EpisodeOver>>> = {
  [Outcome.cancelled]: EpisodeOver.runOver,
  [Outcome.timedOut]: EpisodeOver.timedOut,
};
