/** Gives a file that never changes a second name. */

import { constants } from "node:fs";
import { copyFile, link } from "node:fs/promises";

/** As a hard link where the file system allows that, which takes no room, and as a copy elsewhere. */
export async function linkOrCopy(file: string, target: string): Promise<void> {
  await link(file, target).catch(() => copyFile(file, target, constants.COPYFILE_FICLONE));
}
