/** What parsers of written calls share: a text, the place in it, and steps that ignore the white space before them. */

/** A text is not what a parser reads; the message says where and why, in words that the model may be shown. */
export class ScanError extends Error {}

export abstract class TextScanner {
  protected readonly text: string;
  /** The place of the next character. */
  protected at = 0;
  /** What the text is not, such as `is no list of calls`. */
  readonly #complaint: string;

  constructor(text: string, complaint: string) {
    this.text = text;
    this.#complaint = complaint;
  }

  /** Elements between two marks, separated by commas; a comma may follow the last one. */
  protected listOf<T>(open: string, close: string, element: () => T): T[] {
    this.expect(open);
    const elements: T[] = [];
    while (true) {
      this.skipSpace();
      if (this.text[this.at] === close) break;
      elements.push(element());
      this.skipSpace();
      if (this.text[this.at] !== ",") break;
      this.at++;
    }
    this.expect(close);
    return elements;
  }

  protected expect(mark: string): void {
    this.skipSpace();
    if (this.text[this.at] !== mark) this.fail(`"${mark}"`);
    this.at++;
  }

  /** @param what stands at the end, for the error. */
  protected expectEnd(what: string): void {
    this.skipSpace();
    if (this.at < this.text.length) this.fail(`the end of the ${what}`);
  }

  /** @param pattern a sticky one. @returns what it matches at this place; undefined = nothing. */
  protected match(pattern: RegExp): string | undefined {
    this.skipSpace();
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0];
    if (found !== undefined) this.at += found.length;
    return found;
  }

  protected skipSpace(): void {
    while (/\s/.test(this.text[this.at] ?? "")) this.at++;
  }

  /** @throws {ScanError} with what is expected at this place. */
  protected fail(expected: string): never {
    throw new ScanError(`${this.#complaint} (${expected} is expected at character ${this.at + 1})`);
  }
}
