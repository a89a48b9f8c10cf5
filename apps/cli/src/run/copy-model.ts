/** Copies a model so that its folder is there whole or not at all. */

import { constants } from "node:fs";
import { copyFile, mkdir, readdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { modelFilesOf } from "@hone/hub";
import { UsageError } from "../errors.ts";

/**
 * Copies the files that make up a model; what else lies beside them, as an optimizer, is left.
 * @param target must not exist, or be empty.
 * @returns the names of the files.
 * @throws {UsageError} when the target holds something.
 */
export async function copyModel(source: string, target: string): Promise<string[]> {
  const present = await readdir(target).catch(() => []);
  if (present.length > 0) {
    throw new UsageError(
      `Cannot export to ${target} as the folder must be new or empty: current value is ${present.length} files`,
    );
  }
  const unfinished = join(dirname(target), `.new-${process.pid}-${Date.now()}`);
  try {
    await mkdir(unfinished, { recursive: true });
    const names = modelFilesOf(await readdir(source));
    for (const name of names) {
      await copyFile(join(source, name), join(unfinished, name), constants.COPYFILE_FICLONE);
    }
    await rename(unfinished, target);
    return names;
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
}
