/** The keys that judges may send. */

/** Run files name variables, and send what they hold to addresses of their own: no other variable may be named. */
const KEY_PREFIX = "HONE_JUDGE_KEY";

/** Keys of programs that judges ask, by the name of their variable. */
export function judgeKeys(
  environment: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => name.startsWith(KEY_PREFIX)));
}
