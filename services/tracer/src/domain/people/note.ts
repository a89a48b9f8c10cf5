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

/** Characters that JSON allows as they are, and that act on a terminal or on the direction of a text. */
const ACTING = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** One line of an export. It is the same JSON whether it is read by a program or printed. */
export function noteLine({ createdAtMs, ...note }: ExportedNote): string {
  const json = JSON.stringify({ ...note, createdAt: new Date(createdAtMs).toISOString() });
  return `${json.replace(ACTING, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`)}\n`;
}
