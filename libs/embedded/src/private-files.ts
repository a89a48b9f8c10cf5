/**
 * Folders and files that other accounts of the machine can neither enter nor read, also where an earlier version, or
 * another umask, left them open.
 *
 * Files need not be closed one by one below a closed folder, and what holds a password is made closed all the same.
 */

import { chmod, mkdir } from "node:fs/promises";

/** Mode of a file that its owner alone may read. */
export const PRIVATE_FILE = 0o600;
/** Mode of a folder that its owner alone may enter. */
export const PRIVATE_FOLDER = 0o700;

/** Makes a folder that its owner alone may enter, or closes one that is there. */
export async function privateFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: PRIVATE_FOLDER });
  await chmod(folder, PRIVATE_FOLDER);
}
