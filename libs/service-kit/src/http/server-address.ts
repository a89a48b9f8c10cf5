/**
 * The address of a server: known from the environment, or read from a file that is written when the server is there.
 *
 * With a file, a service may be started before its servers, and loads its code in the meantime. A mounted secret is such a
 * file too.
 */

import { readFile } from "node:fs/promises";
import { deadline, delay } from "@hone/core";
import { SettingError } from "../errors.ts";

export type ServerAddress =
  | { readonly kind: "known"; readonly url: string }
  /** The file's text is the address; it appears whole. */
  | { readonly kind: "told"; readonly file: string; readonly variable: string };

/** A database is made and started within seconds, on a slow machine in a minute or two. A supervisor gives up earlier. */
const TOLD_DEADLINE_MS = 180_000;
const LOOK_EVERY_MS = 10;

/**
 * The address, as soon as it is known.
 * @throws {DeadlineError} when the file does not come in time.
 * @throws {SettingError} when it cannot be read.
 * @throws the reason of the signal.
 */
export async function resolveAddress(
  address: ServerAddress,
  options: { readonly signal: AbortSignal; readonly deadlineMs?: number },
): Promise<string> {
  if (address.kind === "known") return address.url;
  const { signal, deadlineMs = TOLD_DEADLINE_MS } = options;
  const { file, variable } = address;
  const look = async (looking: AbortSignal): Promise<string> => {
    for (;;) {
      const text = await readIfThere(file, variable);
      if (text !== undefined) return text;
      await delay(LOOK_EVERY_MS, { signal: looking });
    }
  };
  return deadline(`an address in ${file} (${variable})`, deadlineMs, look, { signal });
}

/** Undefined where there is none yet. */
async function readIfThere(file: string, variable: string): Promise<string | undefined> {
  try {
    const text = (await readFile(file, "utf8")).trim();
    return text === "" ? undefined : text;
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return undefined;
    throw new SettingError(variable, "must name a file that can be read", file, { cause });
  }
}
