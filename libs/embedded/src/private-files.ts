/**
 * Folders and files that other accounts of the machine can neither enter nor read, even if an earlier version or another umask
 * created them with an open mode.
 *
 * Files in a private folder need no private mode of their own; files with passwords have one nevertheless.
 */

import { chmod, mkdir } from "node:fs/promises";

/** Mode of a file that only its owner may read. */
export const PRIVATE_FILE = 0o600;
/** Mode of a folder that only its owner may enter. */
export const PRIVATE_FOLDER = 0o700;

/** Creates a folder that only its owner may enter, or corrects the mode of an existing one. */
export async function privateFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: PRIVATE_FOLDER });
  await chmod(folder, PRIVATE_FOLDER);
}
