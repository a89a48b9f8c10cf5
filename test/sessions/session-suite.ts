/** What the suites of all clients have in common. */

import type { HeldSession } from "./held-sessions.ts";

/** Two sessions of one run; known when tests run, not when they are declared. */
export interface SuiteSessions {
  readonly first: HeldSession;
  readonly second: HeldSession;
}

/** What is compared with the record when the sessions are over. */
export interface SuiteRecord {
  /** An answer that a client got, by its tokens. */
  answered(promptIds: readonly number[], tokenIds: readonly number[]): void;
  /** Does something that leaves a generation behind, and counts it. */
  abandon(leave: () => Promise<void>): Promise<void>;
  /** Makes a call, again where it was answered too soon, until its generation is seen to run. */
  untilItRuns(call: () => Promise<unknown>): Promise<void>;
}

/** Declares tests. */
export type SessionSuite = (name: string, sessions: SuiteSessions, record: SuiteRecord) => void;
