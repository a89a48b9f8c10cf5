/** Which rows of a file are left out: empty, too long, or there already. */

import { hash } from "node:crypto";
import type { RowFilter } from "@hone/config";
import { promptTextOf } from "../domain/prompt-text.ts";

/** Tells of each row in the file's order whether it is kept. */
export type KeepRow = (row: Readonly<Record<string, unknown>>) => boolean;

/** A filter of one pass over a file: it remembers what it has seen. */
export function makeRowFilter({ maxPromptCharacters, dropDuplicates, dropEmpty }: RowFilter): KeepRow {
  const seen = dropDuplicates ? new SeenTexts() : undefined;
  return function keepRow(row) {
    const text = promptTextOf(row);
    if (dropEmpty && text.trim() === "") return false;
    if (maxPromptCharacters !== undefined && text.length > maxPromptCharacters) return false;
    return seen === undefined || seen.add(text);
  };
}

const FIRST_SLOTS = 1_024;

/**
 * Texts by 64 bits of their SHA-1, in open addressing: 16 to 32 bytes a text, where a Set of them takes the texts
 * themselves. Among ten million texts two share their bits with a probability of 3 in a million.
 */
class SeenTexts {
  /** Two words a slot; 0, 0 = free. */
  #slots = new Uint32Array(FIRST_SLOTS * 2);
  #count = 0;

  /** @returns false where the text was there. */
  add(text: string): boolean {
    const digest = hash("sha1", text, "buffer");
    // 0, 0 means free.
    if (!this.#insert(digest.readUInt32LE(0), digest.readUInt32LE(4) || 1)) return false;
    if (++this.#count * 4 > this.#slots.length) this.#grow();
    return true;
  }

  #insert(high: number, low: number): boolean {
    const mask = this.#slots.length / 2 - 1;
    for (let slot = high & mask; ; slot = (slot + 1) & mask) {
      const a = this.#slots[slot * 2]!;
      const b = this.#slots[slot * 2 + 1]!;
      if (a === high && b === low) return false;
      if (a === 0 && b === 0) {
        this.#slots[slot * 2] = high;
        this.#slots[slot * 2 + 1] = low;
        return true;
      }
    }
  }

  #grow(): void {
    const old = this.#slots;
    this.#slots = new Uint32Array(old.length * 2);
    for (let at = 0; at < old.length; at += 2) {
      if (old[at + 1] !== 0) this.#insert(old[at]!, old[at + 1]!);
    }
  }
}
