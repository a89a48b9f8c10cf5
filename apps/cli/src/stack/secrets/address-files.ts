/**
 * Addresses of a server, one file for each user of it: they hold passwords, so the folder and the files are for the account's
 * owner alone. A file appears whole: services wait for theirs.
 */

import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PRIVATE_FILE, privateFolder } from "@hone/embedded";

/** The file of a user. */
export function addressFile(folder: string, user: string): string {
  return join(folder, `${user}.url`);
}

/** Writes the file of every user. */
export async function writeAddressFiles(
  folder: string,
  urls: Readonly<Record<string, string>>,
): Promise<void> {
  await privateFolder(folder);
  await Promise.all(
    Object.entries(urls).map(async ([user, url]) => {
      const file = addressFile(folder, user);
      await writeFile(`${file}.new`, url, { mode: PRIVATE_FILE });
      await rename(`${file}.new`, file);
    }),
  );
}
