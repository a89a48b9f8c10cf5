/** The keys that judges may send. */

import { BoundKeys } from "@hone/config";

/** Run files name the variable that holds a key; they may only name variables that begin with this. */
const KEY_PREFIX = "HONE_JUDGE_KEY";

/** @throws {ConfigError} when the value of a `…_HOSTS` variable is not a list of hosts. */
export function judgeKeys(environment: Readonly<Record<string, string | undefined>>): BoundKeys {
  return new BoundKeys(KEY_PREFIX, environment, "the judge");
}
