/**
 * Snapshots of a started Python, from which processes start: one for each memory limit and set of packages, shared by all
 * sandboxes of this process and, through a cache folder, by the processes of this account.
 *
 * P1: a snapshot contains nothing from a model, only packages that the operator chose: the child that makes it ends before any code reaches it, and no child can open
 *     the folder (deno-process.ts, kernel-launcher.ts).
 * P2: if the folder cannot be used, the snapshot is made in this process's memory, as if there were no folder. A file that
 *     cannot be trusted is replaced.
 * P3: a snapshot from which a start failed is dropped, its file is removed, and it is made again.
 */

import path from "node:path";
import { cacheFolder, deadline, describeError } from "@hone/core";
import { WheelSet } from "../packages/wheel-set.ts";
import { PythonProcess } from "../python-process.ts";
import { ClosedFolder, PlantedFileError } from "./closed-folder.ts";
import { decodeSnapshot, encodeSnapshot, MAX_FILE_BYTES, snapshotKey } from "./snapshot-file.ts";

export interface SnapshotsOptions {
  /** The folder that holds them; undefined = they are held only in memory. */
  readonly folder: string | undefined;
  /** Makes a snapshot. @default in a child process */
  readonly make?: (maxMemoryBytes: number, wheels: WheelSet) => Promise<Uint8Array>;
}

/** Room for two versions of Hone with three memory limits or sets of packages each; a snapshot has 30 MiB, with sympy 90. */
const NUM_KEPT = 6;
/** Waiting longer for the disk is not worth it: making a snapshot takes a few seconds. */
const DISK_DEADLINE_MS = 10_000;

export class Snapshots {
  readonly #folder: string | undefined;
  readonly #make: (maxMemoryBytes: number, wheels: WheelSet) => Promise<Uint8Array>;
  /** Snapshots by memory limit and packages, the latest used last. */
  readonly #known = new Map<string, Promise<Uint8Array>>();

  constructor({
    folder,
    make = (maxMemoryBytes, wheels) => PythonProcess.snapshot(maxMemoryBytes, wheels),
  }: SnapshotsOptions) {
    this.#folder = folder;
    this.#make = make;
  }

  /**
   * Returns the snapshot for a memory limit and packages; all callers with the same ones get the same one.
   * @throws {SandboxUnavailableError} when the child that makes it cannot be started.
   * @throws {SandboxMissingError} when this machine has no runtime for it.
   */
  take(maxMemoryBytes: number, wheels: WheelSet = WheelSet.none): Promise<Uint8Array> {
    const place = placeOf(maxMemoryBytes, wheels);
    const taken = this.#known.get(place) ?? this.#readOrMake(maxMemoryBytes, wheels);
    this.#known.delete(place);
    this.#known.set(place, taken);
    const [oldest] = this.#known.keys();
    if (oldest !== undefined && this.#known.size > NUM_KEPT) this.#known.delete(oldest);
    taken.catch(() => {
      if (this.#known.get(place) === taken) this.#known.delete(place);
    });
    return taken;
  }

  /** Drops a snapshot from which a start failed (P3). Does nothing if it has been dropped already. */
  async drop(maxMemoryBytes: number, snapshot: Uint8Array, wheels: WheelSet = WheelSet.none): Promise<void> {
    const place = placeOf(maxMemoryBytes, wheels);
    const known = this.#known.get(place);
    if (known === undefined || (await known.catch(() => undefined)) !== snapshot) return;
    if (this.#known.get(place) === known) this.#known.delete(place);
    await this.#inFolder(async (folder) => folder.remove(nameOf(await snapshotKey(maxMemoryBytes, wheels))));
  }

  /** Why the folder cannot be used; undefined if it can. */
  async problem(): Promise<string | undefined> {
    return this.#folder === undefined ? "there is no folder for it" : this.#inFolder(async () => undefined);
  }

  async #readOrMake(maxMemoryBytes: number, wheels: WheelSet): Promise<Uint8Array> {
    const key = await snapshotKey(maxMemoryBytes, wheels);
    let kept: Uint8Array | undefined;
    await this.#inFolder(async (folder) => {
      kept = await readTrusted(folder, key);
    });
    if (kept !== undefined) return kept;
    const made = await this.#make(maxMemoryBytes, wheels);
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

function placeOf(maxMemoryBytes: number, { key }: WheelSet): string {
  return `${maxMemoryBytes}/${key}`;
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
