/**
 * The indexed files of this replica.
 *
 * F1: one index per version of a file; concurrent requests for it share the one pass that builds it.
 * F2: at most MAX_FILES indices are kept; the least recently used one goes.
 */

import { stat } from "node:fs/promises";
import { JsonlFile } from "./jsonl-file.ts";
import { resolvePath } from "./resolve-path.ts";

/** More than the runs that one installation trains at once need. */
const MAX_FILES = 32;

export class JsonlFiles {
  readonly #root: string;
  readonly #files = new Map<string, { readonly version: string; readonly file: Promise<JsonlFile> }>();

  /** @param root HONE_FILES. */
  constructor(root: string) {
    this.#root = root;
  }

  /** The file that a run names, indexed. @throws {SourceError} see resolvePath() and JsonlFile. */
  async open(named: string): Promise<JsonlFile> {
    const real = await resolvePath(this.#root, named);
    const { dev, ino, size, mtimeNs } = await stat(real, { bigint: true });
    const version = `${dev}/${ino}/${size}/${mtimeNs}`;
    const known = this.#files.get(real);
    if (known?.version === version) {
      // Moves it to the young end (F2).
      this.#files.delete(real);
      this.#files.set(real, known);
      return known.file;
    }
    const file = JsonlFile.index(real);
    this.#files.set(real, { version, file });
    for (const oldest of this.#files.keys()) {
      if (this.#files.size <= MAX_FILES) break;
      this.#files.delete(oldest);
    }
    try {
      return await file;
    } catch (error) {
      if (this.#files.get(real)?.file === file) this.#files.delete(real);
      throw error;
    }
  }
}
