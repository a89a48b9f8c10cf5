/**
 * The token of a stack's HTTP: for the page, its API, the intake of spans and, where no key is set, the gateway's API. Other
 * accounts of the machine reach the ports, but cannot read it.
 *
 * It stays the same over restarts, so that a page that is open goes on.
 */

import { randomBytes } from "node:crypto";
import { link, readFile, rm, writeFile } from "node:fs/promises";
import { PRIVATE_FILE } from "@hone/embedded";
import type { Project } from "../../project.ts";

const TOKEN_BYTES = 24;
const TOKEN = /^[A-Za-z0-9_-]{32}$/;

/** The token of this project; made where there is none yet. */
export async function httpToken({ tokenFile }: Project): Promise<string> {
  const known = await readToken(tokenFile);
  if (known !== undefined) return known;
  const beside = `${tokenFile}.${process.pid}`;
  await rm(beside, { force: true });
  await writeFile(beside, `${randomBytes(TOKEN_BYTES).toString("base64url")}\n`, { mode: PRIVATE_FILE });
  try {
    // Whole or not at all; of two that are made at once the first one stays.
    await rm(tokenFile, { force: true });
    await link(beside, tokenFile);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  } finally {
    await rm(beside, { force: true });
  }
  const made = await readToken(tokenFile);
  if (made === undefined)
    throw new Error(`The token that was just written to ${tokenFile} cannot be read back.`);
  return made;
}

/** Undefined where there is none, or the file holds something else. */
async function readToken(file: string): Promise<string | undefined> {
  try {
    const text = (await readFile(file, "utf8")).trim();
    return TOKEN.test(text) ? text : undefined;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** The page's address with the token, which a browser exchanges for a cookie. */
export function pageLink({ pageUrl, token }: { readonly pageUrl: string; readonly token: string }): string {
  return `${pageUrl}/?token=${token}`;
}
