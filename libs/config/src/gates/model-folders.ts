/**
 * The folders that models may be read from.
 *
 * Run files name models by paths, and so do adapters that were fetched from a hub. Without limits, anyone who publishes a run
 * could have any folder of the machine read, and get its contents back in a checkpoint. So a path must lie below the project
 * folder, the folder of runs, the hub's cache, or a folder that the operator adds with HONE_MODEL_FOLDERS. Links are followed
 * before that is checked.
 */

import { readdir, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { InvalidInputError } from "@hone/core";
import { ConfigError } from "../errors.ts";

/** The variable with folders in addition to Hone's own: absolute paths, separated as in PATH. */
export const MODEL_FOLDERS_VARIABLE = "HONE_MODEL_FOLDERS";

export class ModelFolders {
  /** All folders, for a program that runs for the person who names the paths. */
  static readonly everywhere = new ModelFolders([path.resolve("/")]);

  readonly #roots: readonly string[];

  /** @param roots absolute paths; folders that do not exist are ignored. */
  constructor(roots: readonly string[]) {
    this.#roots = roots;
  }

  /** These folders and others. */
  and(...roots: readonly string[]): ModelFolders {
    return new ModelFolders([...this.#roots, ...roots]);
  }

  /**
   * Finds the real folder of a path, absolute or relative.
   * @param key the key of the run file that names the path, for errors, such as `model.path`.
   * @returns undefined if the folder does not exist.
   * @throws {InvalidInputError} when the path lies outside, or a link leads there, whether or not the folder exists.
   */
  async find(named: string, key: string): Promise<string | undefined> {
    const full = path.resolve(named);
    const real = await Promise.all(this.#roots.map((root) => realpath(root).catch(() => undefined)));
    const roots = real.filter((root) => root !== undefined);
    // This comes before the disk is read, so that the answer does not reveal what exists outside.
    if (![...this.#roots, ...roots].some((root) => isBelow(root, full))) throw refusal(named, key);
    const found = await realpath(full).catch(() => undefined);
    if (found === undefined) return undefined;
    if (!roots.some((root) => isBelow(root, found))) throw refusal(named, key);
    if (!(await stat(found)).isDirectory()) return undefined;
    await checkLinks(found, named, key, roots);
    return found;
  }
}

/**
 * Reads the folders from the environment of a service.
 * @param own folders of Hone: HONE_FILES, HONE_STATE_DIR and the hub's cache.
 * @throws {ConfigError} for a folder that is not absolute.
 */
export function readModelFolders(
  environment: Readonly<Record<string, string | undefined>>,
  own: readonly string[],
): ModelFolders {
  const added = (environment[MODEL_FOLDERS_VARIABLE] ?? "")
    .split(path.delimiter)
    .filter((folder) => folder !== "");
  const relative = added.find((folder) => !path.isAbsolute(folder));
  if (relative === undefined) return new ModelFolders([...own, ...added]);
  const key = MODEL_FOLDERS_VARIABLE;
  const allowed = `absolute folders, separated by "${path.delimiter}"`;
  const message = `${key} holds "${relative}", which is not absolute; give ${allowed}`;
  throw new ConfigError("the environment", [{ key, value: relative, allowed, message }]);
}

/** Files beside the weights are copied into checkpoints, so a link among them could copy any file of the machine. */
async function checkLinks(
  folder: string,
  named: string,
  key: string,
  roots: readonly string[],
): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true });
  for (const { name } of entries.filter((entry) => entry.isSymbolicLink())) {
    const real = await realpath(path.join(folder, name)).catch(() => undefined);
    if (real === undefined || roots.some((root) => isBelow(root, real))) continue;
    throw refusal(named, key, `, but its file ${name} is a link to a file outside of the folders`);
  }
}

function isBelow(folder: string, file: string): boolean {
  const relative = path.relative(folder, file);
  return relative !== ".." && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative);
}

/** @param why follows the path in the message. */
function refusal(named: string, key: string, why = ", outside of the folders"): InvalidInputError {
  const allowed = `a folder below HONE_FILES or below one of ${MODEL_FOLDERS_VARIABLE}, or an id of the hub such as owner/name`;
  const message = `${key} is "${named}"${why} that models may be read from; the operator adds folders with ${MODEL_FOLDERS_VARIABLE} (on your own machine: hone up --models FOLDER)`;
  return new InvalidInputError(message, { path: key, allowed });
}
