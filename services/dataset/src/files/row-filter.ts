/** Decides which rows of a file are left out: those with a prompt that is empty, too long or a duplicate. */

import { hash } from "node:crypto";
import type { RowFilter } from "@hone/config";
import { promptTextOf } from "../domain/prompt-text.ts";

/** Says whether a row is kept; it is called with the rows in the file's order. */
export type KeepRow = (row: Readonly<Record<string, unknown>>) => boolean;

/** Makes the filter for one pass over a file; it remembers the prompts that it has seen. */
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
 * A set of texts that keeps only 64 bits of each text's SHA-1, in a hash table with open addressing. It takes 16 to 32
 * bytes a text. Among ten million texts two have the same bits with a probability of 3 in a million.
 */
class SeenTexts {
  /** Two 32-bit words a slot; 0, 0 = free. */
  #slots = new Uint32Array(FIRST_SLOTS * 2);
  #count = 0;

  /** @returns false where the text was in the set already. */
  add(text: string): boolean {
    const digest = hash("sha1", text, "buffer");
    // 0, 0 would mean a free slot.
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
