/** What a run waits for, in a form that people and metrics can use. */

/** Whose turn it is while a run waits. */
export const WaitOwner = {
  dataset: "dataset",
  agentRollout: "agent-rollout",
  inferenceGateway: "inference-gateway",
  judge: "judge",
  trainer: "trainer",
  database: "database",
  bus: "bus",
  /** The people whose run it is. */
  you: "you",
} as const;
export type WaitOwner = (typeof WaitOwner)[keyof typeof WaitOwner];

export interface Wait {
  /** For people, with numbers that may change meanwhile; completes "waits for …". */
  readonly text: string;
  readonly owner: WaitOwner;
  /** Whose turn it is once a try has failed. @default the owner */
  readonly failedOwner?: WaitOwner;
  /** Tells one wait from the next: the time since when starts anew when it changes. @default the text */
  readonly key?: string;
  /** Since when, Unix milliseconds. @default the first time that the key was told */
  readonly sinceMs?: number;
}

/** The wait for a folder to be written: the trainer's own work, and people's turn only when there is no room for it. */
export function diskWait(folder: string): Wait {
  return { text: `the disk (${folder})`, owner: WaitOwner.trainer, failedOwner: WaitOwner.you };
}
