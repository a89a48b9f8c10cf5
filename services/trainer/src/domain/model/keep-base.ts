/** Keeps the base of a run's adapters with the run, so that it is there on every machine and for as long as the run is. */

import { constants } from "node:fs";
import { copyFile, link, mkdir, readdir, realpath } from "node:fs/promises";
import path from "node:path";

const MODEL_FILE = /^(config\.json|.*\.safetensors(\.index\.json)?)$/;

/**
 * Puts configuration and weights of a model's folder into `target`: as further names of the same files where the file
 * system allows that, which takes no room, else as copies.
 */
export async function keepBase(source: string, target: string): Promise<void> {
  await mkdir(target, { recursive: true });
  for (const name of await readdir(source)) {
    if (!MODEL_FILE.test(name)) continue;
    // The hub's cache has links to its files.
    const file = await realpath(path.join(source, name));
    const kept = path.join(target, name);
    await link(file, kept).catch(() => copyFile(file, kept, constants.COPYFILE_FICLONE));
  }
}
