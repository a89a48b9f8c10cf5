/** Keeps the base model of a run's adapters in the run's folder, so that every machine has it for as long as the run exists. */

import { constants } from "node:fs";
import { copyFile, link, mkdir, readdir, realpath } from "node:fs/promises";
import path from "node:path";

const MODEL_FILE = /^(config\.json|.*\.safetensors(\.index\.json)?)$/;

/**
 * Puts configuration and weights of a model's folder into `target`: as hard links where the file system allows them,
 * which take no room, and as copies elsewhere.
 */
export async function keepBase(source: string, target: string): Promise<void> {
  await mkdir(target, { recursive: true });
  for (const name of await readdir(source)) {
    if (!MODEL_FILE.test(name)) continue;
    // The hub's cache holds symbolic links to its files.
    const file = await realpath(path.join(source, name));
    const kept = path.join(target, name);
    await link(file, kept).catch(() => copyFile(file, kept, constants.COPYFILE_FICLONE));
  }
}
