/**
 * A folder whose files other accounts of this machine can neither read nor plant.
 *
 * N1: everything is accessed through open descriptors and never by its path a second time. Files in the folder are reached
 *     through the folder's descriptor, so moving the folder away or putting a link in its place has no effect.
 * N2: the folder belongs to this account, and no other may enter; if an older version or another umask left it open, its mode
 *     is corrected.
 * N3: a file is accepted only if it is a regular file of this account with the mode 0600 and no second name; anything else is
 *     never followed, waited for or read.
 * N4: a file exists as a whole or not at all, even after a crash.
 *
 * Needs /proc, as the sandbox does.
 */

import { randomUUID } from "node:crypto";
import { constants, type Stats } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readdir, rename, unlink } from "node:fs/promises";

const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
const MODE_BITS = 0o7777;
const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;
const UNFINISHED = /^\.unfinished-/;
/** A file that is unfinished for longer was left by a writer that died. */
const MAX_WRITE_MS = 3_600_000;

/** A file or folder is not what this account would have created. */
export class PlantedFileError extends Error {}

export class ClosedFolder implements AsyncDisposable {
  readonly #handle: FileHandle;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /**
   * Opens the folder, and creates it if it does not exist.
   * @throws {PlantedFileError} for a folder of another account.
   * @throws the file system's error, for example when the path is a link or a file.
   */
  static async open(path: string): Promise<ClosedFolder> {
    await mkdir(path, { recursive: true, mode: FOLDER_MODE });
    const handle = await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW); // N1
    try {
      const found = await handle.stat();
      // N2
      if (found.uid !== ownAccount()) {
        throw new PlantedFileError(
          `the folder ${path} belongs to account ${found.uid}; it must belong to account ${ownAccount()}`,
        );
      }
      if ((found.mode & MODE_BITS) !== FOLDER_MODE) await handle.chmod(FOLDER_MODE);
      return new ClosedFolder(handle);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /**
   * @returns a file's bytes; undefined if it does not exist.
   * @throws {PlantedFileError} for anything but a private file of this account with at most `maxBytes` (N3).
   */
  async read(name: string, maxBytes: number): Promise<Buffer | undefined> {
    const handle = await this.#openForReading(name);
    if (handle === undefined) return undefined;
    try {
      const found = await handle.stat();
      checkOrdinary(name, found, maxBytes);
      const bytes = Buffer.alloc(found.size);
      let length = 0;
      while (length < bytes.length) {
        const { bytesRead } = await handle.read(bytes, length, bytes.length - length, length);
        if (bytesRead === 0) throw new PlantedFileError(`${name} became shorter while it was read`);
        length += bytesRead;
      }
      return bytes;
    } finally {
      await handle.close();
    }
  }

  /** Writes a file and replaces what has its name (N4). */
  async write(name: string, parts: readonly Uint8Array[]): Promise<void> {
    const unfinished = `.unfinished-${name}-${randomUUID()}`;
    const handle = await open(this.#at(unfinished), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, FILE_MODE);
    try {
      try {
        await handle.chmod(FILE_MODE); // The umask may have removed bits.
        for (const part of parts) await writeAll(handle, part);
        await handle.sync();
      } finally {
        await handle.close();
      }
      await rename(this.#at(unfinished), this.#at(name));
    } catch (error) {
      await this.remove(unfinished);
      throw error;
    }
    await this.#handle.sync();
  }

  /** Removes what has this name, except a folder; of a link, only the link itself. */
  async remove(name: string): Promise<void> {
    await unlink(this.#at(name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error;
    });
  }

  /** Removes unfinished files of writers that died, and all files but the newest. */
  async keepNewest(numKept: number): Promise<void> {
    const found: { readonly name: string; readonly ms: number }[] = [];
    for (const name of await readdir(this.#at("."))) {
      // Another process may be removing files at the same time.
      const ms = (await lstat(this.#at(name)).catch(() => undefined))?.mtimeMs;
      if (ms === undefined) continue;
      if (!UNFINISHED.test(name)) found.push({ name, ms });
      else if (Date.now() - ms > MAX_WRITE_MS) await this.remove(name);
    }
    found.sort((a, b) => b.ms - a.ms);
    for (const { name } of found.slice(numKept)) await this.remove(name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }

  async #openForReading(name: string): Promise<FileHandle | undefined> {
    try {
      // O_NONBLOCK, because opening a planted pipe would wait for its other end.
      return await open(this.#at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw new PlantedFileError(`${name} is not a readable file of this account`, { cause });
    }
  }

  /** N1: Node has no `openat`; paths below /proc/self/fd have the same effect. */
  #at(name: string): string {
    return `/proc/self/fd/${this.#handle.fd}/${name}`;
  }
}

/** N3 @throws {PlantedFileError} */
function checkOrdinary(name: string, found: Stats, maxBytes: number): void {
  const refuse = (what: string): never => {
    throw new PlantedFileError(`${name} ${what}`);
  };
  if (!found.isFile()) refuse("is not a regular file");
  if (found.uid !== ownAccount())
    refuse(`belongs to account ${found.uid}; it must belong to account ${ownAccount()}`);
  const mode = found.mode & MODE_BITS;
  if (mode !== FILE_MODE) refuse(`has the mode 0${mode.toString(8)}; it must be 0${FILE_MODE.toString(8)}`);
  // A count of 0 is fine: a newer file has just taken its place.
  if (found.nlink > 1) refuse(`has ${found.nlink} names; at most one is allowed`);
  if (found.size > maxBytes) refuse(`has ${found.size} bytes; at most ${maxBytes} are allowed`);
}

/** The effective user, whose rights count. */
function ownAccount(): number {
  const account = process.geteuid?.();
  if (account === undefined) throw new Error("this system has no owners of files");
  return account;
}

async function writeAll(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    at += (await handle.write(bytes, at, bytes.length - at)).bytesWritten;
  }
}
