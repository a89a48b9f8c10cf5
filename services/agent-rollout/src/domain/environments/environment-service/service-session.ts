/** An episode at an environment's server: the port that each protocol implements. */

import type { EnvironmentInfo, EnvironmentMessage } from "@hone/agents";

/** What a server said about the state of an episode, checked. */
export interface ServiceState {
  readonly observation: string;
  /** The same as messages, for a server that words its prompts itself. */
  readonly messages?: readonly EnvironmentMessage[];
  /** Reward of the step; 0 where the server gave none. */
  readonly reward: number;
  readonly isTerminated: boolean;
  readonly isTruncated: boolean;
  readonly info: EnvironmentInfo;
}

/**
 * One episode.
 *
 * Its calls throw an InfrastructureError when the server does not answer, fails, or answers something that cannot be read, and
 * an EnvironmentRefusedError when it refuses the task.
 */
export interface ServiceSession {
  /** Begins the episode. */
  open(seed: number): Promise<ServiceState>;
  step(action: string): Promise<ServiceState>;
  /** Asks for the episode's reward; absent = the protocol has no such call. */
  evaluate?(): Promise<number>;
  /** Ends a call under way and releases what the server holds, within a few seconds. */
  release(): Promise<void>;
}
