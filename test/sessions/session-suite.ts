/** Types that the suites of all clients share. */

import type { HeldSession } from "./held-sessions.ts";

/** Two sessions of one run. Their values are set before the tests run, and not yet when they are declared. */
export interface SuiteSessions {
  readonly first: HeldSession;
  readonly second: HeldSession;
}

/** Collects what is compared with the record after the sessions have ended. */
export interface SuiteRecord {
  /** Notes the tokens of an answer that a client received. */
  answered(promptIds: readonly number[], tokenIds: readonly number[]): void;
  /** Calls `leave`, which abandons a generation, and counts it. */
  abandon(leave: () => Promise<void>): Promise<void>;
  /** Makes a call until its generation is seen running; repeats the call if it was answered too soon. */
  untilItRuns(call: () => Promise<unknown>): Promise<void>;
}

/** Declares tests. */
export type SessionSuite = (name: string, sessions: SuiteSessions, record: SuiteRecord) => void;
