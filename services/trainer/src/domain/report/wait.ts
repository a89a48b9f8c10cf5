/** What a run waits for, in a form that both people and metrics can use. */

/** Who must act while a run waits. */
export const WaitOwner = {
  dataset: "dataset",
  agentRollout: "agent-rollout",
  inferenceGateway: "inference-gateway",
  judge: "judge",
  trainer: "trainer",
  database: "database",
  bus: "bus",
  /** The people to whom the run belongs. */
  you: "you",
} as const;
export type WaitOwner = (typeof WaitOwner)[keyof typeof WaitOwner];

export interface Wait {
  /** For people: completes "waits for …" and may hold numbers that change meanwhile. */
  readonly text: string;
  readonly owner: WaitOwner;
  /** Who must act once a try has failed. @default the owner */
  readonly failedOwner?: WaitOwner;
  /** Distinguishes one wait from the next: when it changes, the time of the wait starts anew. @default the text */
  readonly key?: string;
  /** Start of the wait in Unix milliseconds. @default the first time that the key was reported */
  readonly sinceMs?: number;
}

/** The wait for a folder to be written. It is the trainer's own work, and people must act only once a try has failed. */
export function diskWait(folder: string): Wait {
  return { text: `the disk (${folder})`, owner: WaitOwner.trainer, failedOwner: WaitOwner.you };
}
