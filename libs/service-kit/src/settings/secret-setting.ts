/** A secret of a service: the value of `NAME`, or the text of the file that `NAME_FILE` names, as for a mounted secret. */

import { readFileSync } from "node:fs";
import { SettingError } from "../errors.ts";

/**
 * The value of `NAME`, or else the text of the file that `NAME_FILE` names; undefined where neither is set.
 * @param read the environment, as it was checked.
 * @throws {SettingError} when the file cannot be read, or holds anything but one word.
 */
export function readSecretSetting<const Name extends string>(
  read: { readonly [Key in Name | `${Name}_FILE`]?: string | undefined },
  name: Name,
): string | undefined {
  const fileVariable = `${name}_FILE` as const;
  const file = read[fileVariable];
  if (read[name] !== undefined || file === undefined) return read[name];
  let secret: string;
  try {
    secret = readFileSync(file, "utf8").trim();
  } catch (cause) {
    throw new SettingError(fileVariable, "must be a readable file", file, { cause });
  }
  if (secret === "" || /\s/.test(secret))
    throw new SettingError(fileVariable, "must hold a key without spaces", file);
  return secret;
}
