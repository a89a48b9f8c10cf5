/** Resolves the paths in run files, and keeps them inside the folder that the operator opened to them. */

import { realpath, stat } from "node:fs/promises";
import path from "node:path";
import { SourceError } from "../errors.ts";

/**
 * Finds the real path of a file that a run names. It lies below `root` after symbolic links are followed, too.
 * @param root HONE_FILES: the project folder or a mounted volume.
 * @throws {SourceError} when the path leaves the root, does not exist or is not a file.
 */
export async function resolvePath(root: string, named: string): Promise<string> {
  const allowed = "a file below HONE_FILES";
  const refuse = (rule: string, cause?: unknown) =>
    new SourceError(`the dataset's path "${named}" ${rule}`, { path: "path", allowed }, { cause });
  if (named === "" || named.includes("\0")) throw refuse("must name a file");
  const realRoot = await realpath(root);
  const lexical = path.resolve(realRoot, named);
  // Checked before the disk is asked, so that the answer does not reveal which files exist outside.
  if (!isInside(realRoot, lexical)) throw refuse("must stay below HONE_FILES");
  let real: string;
  try {
    real = await realpath(lexical);
  } catch (error) {
    throw refuse("must exist below HONE_FILES", error);
  }
  if (!isInside(realRoot, real)) throw refuse("must stay below HONE_FILES");
  if (!(await stat(real)).isFile()) throw refuse("must name a file");
  return real;
}

function isInside(root: string, file: string): boolean {
  const relative = path.relative(root, file);
  return (
    relative !== "" &&
    relative !== ".." &&
    !relative.startsWith(`..${path.sep}`) &&
    !path.isAbsolute(relative)
  );
}
