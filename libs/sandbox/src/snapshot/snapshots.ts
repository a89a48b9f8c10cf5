/**
 * Snapshots of a started Python, from which processes start: one for each bound of memory, shared by all sandboxes of this process and,
 * through a cache folder, by the processes of this account.
 *
 * P1: nothing of a model's is in one: the child that makes it ends before any code could reach it, and no child can open the
 *     folder (deno-process.ts, kernel-launcher.ts).
 * P2: where the folder cannot be used, or holds something that is not to be trusted, the snapshot is made in this process's memory as
 *     if there were no folder. What cannot be trusted is replaced.
 * P3: one from which a start failed is forgotten and its file removed: it is made again.
 */

import path from "node:path";
import { cacheFolder, deadline, describeError } from "@hone/core";
import { PythonProcess } from "../python-process.ts";
import { ClosedFolder, PlantedFileError } from "./closed-folder.ts";
import { decodeSnapshot, encodeSnapshot, MAX_FILE_BYTES, snapshotKey } from "./snapshot-file.ts";

export interface SnapshotsOptions {
  /** Where they are kept; undefined = in memory alone. */
  readonly folder: string | undefined;
  /** @default a child process that does so */
  readonly make?: (maxMemoryBytes: number) => Promise<Uint8Array>;
}

/** Two versions of Hone, with two bounds of memory each; 30 MiB for each. */
const NUM_KEPT = 4;
/** A disk that is slower than this is not worth waiting for: to make one takes a few seconds. */
const DISK_DEADLINE_MS = 10_000;

export class Snapshots {
  readonly #folder: string | undefined;
  readonly #make: (maxMemoryBytes: number) => Promise<Uint8Array>;
  /** By the bound of memory. */
  readonly #known = new Map<number, Promise<Uint8Array>>();

  constructor({
    folder,
    make = (maxMemoryBytes) => PythonProcess.snapshot(maxMemoryBytes),
  }: SnapshotsOptions) {
    this.#folder = folder;
    this.#make = make;
  }

  /**
   * The same for all who ask for the same bound, at once or later.
   * @throws {SandboxUnavailableError} when the child that makes it does not come up.
   * @throws {SandboxMissingError} where this machine has no runtime for it.
   */
  take(maxMemoryBytes: number): Promise<Uint8Array> {
    const known = this.#known.get(maxMemoryBytes);
    if (known !== undefined) return known;
    const taken = this.#readOrMake(maxMemoryBytes);
    this.#known.set(maxMemoryBytes, taken);
    taken.catch(() => {
      if (this.#known.get(maxMemoryBytes) === taken) this.#known.delete(maxMemoryBytes);
    });
    return taken;
  }

  /** A start from it failed (P3). Does nothing where somebody else has told so already. */
  async drop(maxMemoryBytes: number, snapshot: Uint8Array): Promise<void> {
    const known = this.#known.get(maxMemoryBytes);
    if (known === undefined || (await known.catch(() => undefined)) !== snapshot) return;
    if (this.#known.get(maxMemoryBytes) === known) this.#known.delete(maxMemoryBytes);
    await this.#inFolder(async (folder) => folder.remove(nameOf(await snapshotKey(maxMemoryBytes))));
  }

  /** Why the folder cannot be used; undefined where it can. */
  async problem(): Promise<string | undefined> {
    return this.#folder === undefined ? "there is no folder for it" : this.#inFolder(async () => undefined);
  }

  async #readOrMake(maxMemoryBytes: number): Promise<Uint8Array> {
    const key = await snapshotKey(maxMemoryBytes);
    let kept: Uint8Array | undefined;
    await this.#inFolder(async (folder) => {
      kept = await readTrusted(folder, key);
    });
    if (kept !== undefined) return kept;
    const made = await this.#make(maxMemoryBytes);
    await this.#inFolder(async (folder) => {
      await folder.write(nameOf(key), encodeSnapshot(key, made));
      await folder.keepNewest(NUM_KEPT);
    });
    return made;
  }

  /** Works in the folder, where that can be had (P2). @returns why not */
  async #inFolder(work: (folder: ClosedFolder) => Promise<void>): Promise<string | undefined> {
    const path = this.#folder;
    if (path === undefined) return undefined;
    try {
      await deadline("the cache of snapshots", DISK_DEADLINE_MS, async () => {
        await using folder = await ClosedFolder.open(path);
        await work(folder);
      });
      return undefined;
    } catch (error) {
      return `${path}: ${describeError(error)}`;
    }
  }
}

/** One for the whole process. */
export function ownSnapshots(): Snapshots {
  own ??= new Snapshots({ folder: snapshotFolder() });
  return own;
}
let own: Snapshots | undefined;

/** Undefined for an account without a home where no folder is named. */
function snapshotFolder(): string | undefined {
  try {
    return path.resolve(cacheFolder(process.env), "sandbox");
  } catch {
    return undefined;
  }
}

function nameOf(key: string): string {
  return `python-${key}.snapshot`;
}

async function readTrusted(folder: ClosedFolder, key: string): Promise<Uint8Array | undefined> {
  const name = nameOf(key);
  try {
    const file = await folder.read(name, MAX_FILE_BYTES);
    const snapshot = file === undefined ? undefined : decodeSnapshot(key, file);
    if (file !== undefined && snapshot === undefined) await folder.remove(name);
    return snapshot;
  } catch (error) {
    if (!(error instanceof PlantedFileError)) throw error;
    await folder.remove(name);
    return undefined;
  }
}
