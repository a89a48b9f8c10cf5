/**
 * The folders that models may be read from.
 *
 * Run files name models by paths, and so do adapters that were fetched from a hub. Without bounds, whoever publishes a run
 * could have any folder of the machine read, and get what it holds back as a checkpoint. So a path counts only below the
 * project folder, the folder of runs, the hub's cache, and what the operator adds by HONE_MODEL_FOLDERS; links are followed
 * before that is decided.
 */

import { readdir, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { InvalidInputError } from "@hone/core";
import { ConfigError } from "../errors.ts";

/** Folders beside Hone's own, absolute, separated as in PATH. */
export const MODEL_FOLDERS_VARIABLE = "HONE_MODEL_FOLDERS";

export class ModelFolders {
  /** For a program of the very person who names the paths. */
  static readonly everywhere = new ModelFolders([path.resolve("/")]);

  readonly #roots: readonly string[];

  /** @param roots absolute; those that are not there hold nothing. */
  constructor(roots: readonly string[]) {
    this.#roots = roots;
  }

  /** The same, and more. */
  and(...roots: readonly string[]): ModelFolders {
    return new ModelFolders([...this.#roots, ...roots]);
  }

  /**
   * The real folder of a path, absolute or not.
   * @param key that names the path, for errors, such as `model.path`.
   * @returns undefined where there is no folder.
   * @throws {InvalidInputError} where it lies outside, whether it is there or not, also by a link.
   */
  async find(named: string, key: string): Promise<string | undefined> {
    const full = path.resolve(named);
    const real = await Promise.all(this.#roots.map((root) => realpath(root).catch(() => undefined)));
    const roots = real.filter((root) => root !== undefined);
    // Before the disk is asked, so that the answer does not tell what lies outside.
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
 * As the operator of a service sets them.
 * @param own folders of Hone: HONE_FILES, HONE_STATE_DIR, the hub's cache.
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

/** What lies beside the weights goes into checkpoints: a link there would take any file of the machine along. */
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
    throw refusal(named, key, `, as its file ${name} is a link that`);
  }
}

function isBelow(folder: string, file: string): boolean {
  const relative = path.relative(folder, file);
  return relative !== ".." && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative);
}

/** @param why between the name and what lies outside. */
function refusal(named: string, key: string, why = ", which"): InvalidInputError {
  const allowed = `a folder below HONE_FILES or below one of ${MODEL_FOLDERS_VARIABLE}, or an id of the hub such as owner/name`;
  const message = `${key} is "${named}"${why} lies outside of the folders that models may be read from; the operator adds folders by ${MODEL_FOLDERS_VARIABLE} (hone up --models FOLDER on one's own machine)`;
  return new InvalidInputError(message, { path: key, allowed });
}
