/** Entries that are registered once under a name and looked up by it. */

import { DuplicateNameError } from "../errors.ts";

export class Registry<T> {
  /** Kind of the entries, with its article: "an agent". */
  readonly kind: string;
  readonly #entries = new Map<string, T>();

  constructor(kind: string) {
    this.kind = kind;
  }

  /** @throws {DuplicateNameError} when the name is taken. */
  add(name: string, entry: T): void {
    if (this.#entries.has(name)) throw new DuplicateNameError(this.kind, name);
    this.#entries.set(name, entry);
  }

  get(name: string): T | undefined {
    return this.#entries.get(name);
  }

  names(): string[] {
    return [...this.#entries.keys()].sort();
  }
}
