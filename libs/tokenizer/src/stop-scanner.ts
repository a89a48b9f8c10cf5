/**
 * Finds stop texts in a text that arrives in pieces.
 *
 * Text that may be the beginning of a stop text is held back until that is certain, so that no part of a stop text is ever
 * returned. The stop text that is complete first counts, so the result does not depend on the pieces.
 */

export interface Scanned {
  /** Text that is certainly not part of a stop text. */
  readonly text: string;
  /** Whether a stop text was found; `text` then ends before it, and no text follows. */
  readonly isStopped: boolean;
  /** The stop text that was found. */
  readonly stopText?: string;
}

export class StopScanner {
  readonly #stopTexts: readonly string[];
  #held = "";

  /** @param stopTexts none of them empty. */
  constructor(stopTexts: readonly string[]) {
    this.#stopTexts = stopTexts;
  }

  push(piece: string): Scanned {
    const text = this.#held + piece;
    const found = this.#firstStop(text);
    if (found !== undefined) {
      this.#held = "";
      return { text: text.slice(0, found.at), isStopped: true, stopText: text.slice(found.at, found.end) };
    }
    const certain = text.length - this.#uncertainCharacters(text);
    this.#held = text.slice(certain);
    return { text: text.slice(0, certain), isStopped: false };
  }

  /** @returns the text that was held back; as the text has ended, it was not a stop text. */
  flush(): string {
    const text = this.#held;
    this.#held = "";
    return text;
  }

  /** Where the stop text that is complete first begins; if several end together, the longest counts. */
  #firstStop(text: string): { readonly at: number; readonly end: number } | undefined {
    let first: { readonly at: number; readonly end: number } | undefined;
    for (const stop of this.#stopTexts) {
      const at = text.indexOf(stop);
      if (at < 0) continue;
      const end = at + stop.length;
      if (first === undefined || end < first.end || (end === first.end && at < first.at)) first = { at, end };
    }
    return first;
  }

  /** Length of the longest suffix of the text that is a prefix of a stop text. */
  #uncertainCharacters(text: string): number {
    const lengths = this.#stopTexts.map((stop) => {
      let length = Math.min(stop.length - 1, text.length);
      while (length > 0 && !stop.startsWith(text.slice(text.length - length))) length--;
      return length;
    });
    return Math.max(0, ...lengths);
  }
}
