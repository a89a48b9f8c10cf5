/** Keeps the base model of a run's adapters in the run's folder, so that every machine has it for as long as the run exists. */

import { mkdir, readdir, realpath } from "node:fs/promises";
import path from "node:path";
import { linkOrCopy } from "../state/link-or-copy.ts";

const MODEL_FILE = /^(config\.json|.*\.safetensors(\.index\.json)?)$/;

/** Puts configuration and weights of a model's folder into `target`. */
export async function keepBase(source: string, target: string): Promise<void> {
  await mkdir(target, { recursive: true });
  for (const name of await readdir(source)) {
    if (!MODEL_FILE.test(name)) continue;
    // The hub's cache holds symbolic links to its files.
    await linkOrCopy(await realpath(path.join(source, name)), path.join(target, name));
  }
}
