/**
 * The indexed files of this replica.
 *
 * F1: there is one index for each version of a file and filter; concurrent requests for it share the pass that builds it.
 * F2: at most MAX_FILES indices are kept in memory, and the least recently used one is dropped. On disk all of them are
 *     kept below the cache folder, with the rows of Parquet files as JSON Lines.
 */

import { createHash } from "node:crypto";
import { mkdir, readdir, rm, stat } from "node:fs/promises";
import path from "node:path";
import type { RowFilter } from "@hone/config";
import { describeError } from "@hone/core";
import type { Logger } from "@hone/telemetry";
import { loadIndex, saveIndex } from "./index-file.ts";
import { indexRows, JsonlFile } from "./jsonl-file.ts";
import { resolvePath } from "./resolve-path.ts";

/** More files than the runs of one installation train on at the same time. */
const MAX_FILES = 256;

export interface RowFilesOptions {
  /** HONE_FILES: the folder that holds the files which run files name. */
  readonly root: string;
  /** Folder for indices and for the rows of Parquet files. */
  readonly cacheFolder: string;
  /** Most memory of the process that decodes a Parquet file. @default see parquetToJsonl() */
  readonly parquetMemoryBytes?: number | undefined;
  readonly logger: Logger;
}

export class RowFiles {
  readonly #options: RowFilesOptions;
  readonly #files = new Map<string, { readonly version: string; readonly file: Promise<JsonlFile> }>();

  constructor(options: RowFilesOptions) {
    this.#options = options;
  }

  /** HONE_FILES. */
  get root(): string {
    return this.#options.root;
  }

  /**
   * Opens a file that a run names, with its index. A name that ends in .parquet is a Parquet file, any other JSON Lines.
   * @throws {SourceError} see resolvePath(), parquetToJsonl() and indexRows().
   */
  async open(named: string, filter?: RowFilter): Promise<JsonlFile> {
    return this.openReal(await resolvePath(this.root, named), filter);
  }

  /** Opens a file by its real path, such as one in the hub's cache. */
  async openReal(real: string, filter?: RowFilter): Promise<JsonlFile> {
    const { dev, ino, size, mtimeNs } = await stat(real, { bigint: true });
    const version = `${dev}/${ino}/${size}/${mtimeNs}`;
    const key = JSON.stringify([real, filter ?? null]);
    const known = this.#files.get(key);
    // Marks it as the most recently used (F2).
    this.#files.delete(key);
    const file = known?.version === version ? known.file : this.#index(real, version, filter);
    this.#files.set(key, { version, file });
    for (const oldest of this.#files.keys()) {
      if (this.#files.size <= MAX_FILES) break;
      this.#files.delete(oldest);
    }
    try {
      return await file;
    } catch (error) {
      if (this.#files.get(key)?.file === file) this.#files.delete(key);
      throw error;
    }
  }

  async #index(real: string, version: string, filter: RowFilter | undefined): Promise<JsonlFile> {
    const { cacheFolder, logger } = this.#options;
    const name = path.basename(real);
    const rows = isParquet(real) ? await this.#rowsOf(real, version) : real;
    const stored = path.join(cacheFolder, "index", `${digestOf(JSON.stringify([real, filter ?? null]))}.idx`);
    const known = await loadIndex(stored, version);
    if (known !== undefined) return new JsonlFile(rows, known, name);
    const startedAt = performance.now();
    const index = await indexRows(rows, name, filter);
    logger.info("a dataset file was indexed", {
      file: name,
      rows: index.size,
      dropped: index.dropped,
      ms: Math.round(performance.now() - startedAt),
    });
    try {
      await saveIndex(stored, version, index);
    } catch (error) {
      logger.warn("an index could not be written to disk", { file: name, reason: describeError(error) });
    }
    return new JsonlFile(rows, index, name);
  }

  /** Writes a Parquet file's rows as JSON Lines, and removes those of its older versions. @returns the path. */
  async #rowsOf(real: string, version: string): Promise<string> {
    const folder = path.join(this.#options.cacheFolder, "rows");
    await mkdir(folder, { recursive: true });
    const prefix = digestOf(real);
    const wanted = `${prefix}-${digestOf(version)}.jsonl`;
    const existing = (await readdir(folder)).filter((name) => name.startsWith(prefix));
    if (!existing.includes(wanted)) {
      // The Parquet library takes long to load, and most installations never read such a file.
      const { parquetToJsonl } = await import("./parquet/parquet-rows.ts");
      await parquetToJsonl(real, path.join(folder, wanted), {
        maxMemoryBytes: this.#options.parquetMemoryBytes,
      });
      // A reader that still uses an older one has it open, so removing it does no harm.
      const older = existing.filter((name) => name.endsWith(".jsonl"));
      await Promise.all(older.map((name) => rm(path.join(folder, name), { force: true })));
    }
    return path.join(folder, wanted);
  }
}

export function isParquet(file: string): boolean {
  return file.toLowerCase().endsWith(".parquet");
}

const DIGEST_CHARACTERS = 32;

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, DIGEST_CHARACTERS);
}
