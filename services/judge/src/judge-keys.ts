/** The keys that judges may send. */

import { BoundKeys } from "@hone/config";

/** Run files name variables: no other may be named. */
const KEY_PREFIX = "HONE_JUDGE_KEY";

/** @throws {ConfigError} when a binding is no list of hosts. */
export function judgeKeys(environment: Readonly<Record<string, string | undefined>>): BoundKeys {
  return new BoundKeys(KEY_PREFIX, environment, "the judge");
}
