/** The folder for everything that can be built or downloaded again. All programs of a user account share it. */

import { homedir } from "node:os";
import { join } from "node:path";

/** Environment variable that names the folder. @default the folder `hone` in XDG_CACHE_HOME or ~/.cache */
const CACHE_VARIABLE = "HONE_CACHE_DIR";

/**
 * @returns the path of the cache folder; the folder itself is not created.
 * @throws when the environment names no folder and the account has no home folder.
 */
export function cacheFolder(environment: Readonly<Record<string, string | undefined>>): string {
  return environment[CACHE_VARIABLE] || join(environment.XDG_CACHE_HOME || join(homedir(), ".cache"), "hone");
}
