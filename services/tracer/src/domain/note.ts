/** What a person writes about a rollout. */

/** A note, with or without a score. */
export interface Note {
  readonly id: number;
  readonly runId: string;
  readonly slot: string;
  /** Index of the turn that it is about; null = the whole rollout. */
  readonly turn: number | null;
  /** Empty = not said. */
  readonly author: string;
  readonly text: string;
  /** Null = none. */
  readonly score: number | null;
  readonly createdAtMs: number;
}

export type NewNote = Omit<Note, "id">;

/** A note with what is stored of its rollout; null = that is no longer kept. */
export interface ExportedNote extends Note {
  readonly outcome: string | null;
  readonly reward: number | null;
  readonly taskId: string | null;
}

/** Most notes of one rollout. */
export const MAX_NOTES = 200;

/** One line of an export. The names are those of the run file's JSON: camel case. */
export function noteLine({ createdAtMs, ...note }: ExportedNote): string {
  return `${JSON.stringify({ ...note, createdAt: new Date(createdAtMs).toISOString() })}\n`;
}
