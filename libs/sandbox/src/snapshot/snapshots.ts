/**
 * Snapshots of a started Python, from which processes start: one for each memory limit, shared by all sandboxes of this process
 * and, through a cache folder, by the processes of this account.
 *
 * P1: a snapshot contains nothing from a model: the child that makes it ends before any code reaches it, and no child can open
 *     the folder (deno-process.ts, kernel-launcher.ts).
 * P2: if the folder cannot be used, the snapshot is made in this process's memory, as if there were no folder. A file that
 *     cannot be trusted is replaced.
 * P3: a snapshot from which a start failed is dropped, its file is removed, and it is made again.
 */

import path from "node:path";
import { cacheFolder, deadline, describeError } from "@hone/core";
import { PythonProcess } from "../python-process.ts";
import { ClosedFolder, PlantedFileError } from "./closed-folder.ts";
import { decodeSnapshot, encodeSnapshot, MAX_FILE_BYTES, snapshotKey } from "./snapshot-file.ts";

export interface SnapshotsOptions {
  /** The folder that holds them; undefined = they are held only in memory. */
  readonly folder: string | undefined;
  /** Makes a snapshot. @default in a child process */
  readonly make?: (maxMemoryBytes: number) => Promise<Uint8Array>;
}

/** Room for two versions of Hone with two memory limits each; a snapshot has 30 MiB. */
const NUM_KEPT = 4;
/** Waiting longer for the disk is not worth it: making a snapshot takes a few seconds. */
const DISK_DEADLINE_MS = 10_000;

export class Snapshots {
  readonly #folder: string | undefined;
  readonly #make: (maxMemoryBytes: number) => Promise<Uint8Array>;
  /** Snapshots by memory limit. */
  readonly #known = new Map<number, Promise<Uint8Array>>();

  constructor({
    folder,
    make = (maxMemoryBytes) => PythonProcess.snapshot(maxMemoryBytes),
  }: SnapshotsOptions) {
    this.#folder = folder;
    this.#make = make;
  }

  /**
   * Returns the snapshot for a memory limit; all callers with the same limit get the same one.
   * @throws {SandboxUnavailableError} when the child that makes it cannot be started.
   * @throws {SandboxMissingError} when this machine has no runtime for it.
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

  /** Drops a snapshot from which a start failed (P3). Does nothing if it has been dropped already. */
  async drop(maxMemoryBytes: number, snapshot: Uint8Array): Promise<void> {
    const known = this.#known.get(maxMemoryBytes);
    if (known === undefined || (await known.catch(() => undefined)) !== snapshot) return;
    if (this.#known.get(maxMemoryBytes) === known) this.#known.delete(maxMemoryBytes);
    await this.#inFolder(async (folder) => folder.remove(nameOf(await snapshotKey(maxMemoryBytes))));
  }

  /** Why the folder cannot be used; undefined if it can. */
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

  /** Works in the folder, if it can be used (P2). @returns the reason if it cannot; undefined otherwise. */
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

/** The snapshots that the whole process shares. */
export function ownSnapshots(): Snapshots {
  own ??= new Snapshots({ folder: snapshotFolder() });
  return own;
}
let own: Snapshots | undefined;

/** Undefined if the account has no home and no folder is configured. */
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
