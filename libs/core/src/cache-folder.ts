/** Where Hone keeps what can be made or fetched again: one folder for every program of an account. */

import { homedir } from "node:os";
import { join } from "node:path";

/** Names the folder. @default XDG_CACHE_HOME or ~/.cache, with `hone` below it */
const CACHE_VARIABLE = "HONE_CACHE_DIR";

/**
 * The cache folder that this environment names; nothing is made.
 * @throws where none is named and the account has no home.
 */
export function cacheFolder(environment: Readonly<Record<string, string | undefined>>): string {
  return environment[CACHE_VARIABLE] || join(environment.XDG_CACHE_HOME || join(homedir(), ".cache"), "hone");
}
