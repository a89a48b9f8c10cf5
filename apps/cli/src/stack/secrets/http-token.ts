/**
 * The token for a stack's HTTP ports: for the page, its API, the receiver of spans and, unless a key is set, the gateway's API.
 * Other accounts of the machine can reach the ports, but cannot read the token.
 *
 * It is kept over restarts, so that an open page continues to work.
 */

import { randomBytes } from "node:crypto";
import { link, readFile, rename, rm, writeFile } from "node:fs/promises";
import { PRIVATE_FILE } from "@hone/embedded";
import type { Project } from "../../project.ts";

const TOKEN_BYTES = 24;
const TOKEN = /^[A-Za-z0-9_-]{32}$/;

/** The token of this project, which is created if there is none yet. */
export async function httpToken({ tokenFile }: Project): Promise<string> {
  const known = await readToken(tokenFile);
  if (known !== undefined) return known;
  // A name of this call's own, as a process may ask several times at once.
  const beside = `${tokenFile}.${process.pid}-${randomBytes(4).toString("hex")}`;
  await writeFile(beside, `${randomBytes(TOKEN_BYTES).toString("base64url")}\n`, { mode: PRIVATE_FILE });
  try {
    // The file is created completely or not at all; if two are created at once, the first one is kept.
    await link(beside, tokenFile).catch(async (error: unknown) => {
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
      if ((await readToken(tokenFile)) === undefined) await rename(beside, tokenFile);
    });
  } finally {
    await rm(beside, { force: true });
  }
  const made = await readToken(tokenFile);
  if (made === undefined)
    throw new Error(`the token that was just written to ${tokenFile} cannot be read back`);
  return made;
}

/** @returns undefined if there is no file, or it holds no valid token. */
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
