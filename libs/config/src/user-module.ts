/**
 * Code of the user, imported once per version of its file: one that has changed is imported anew, and who has the older one
 * keeps it.
 *
 * Node keeps modules by their address, so a version has its time in it, as `?v=…`. While a debugger is attached the first
 * version goes by the file's own address: that is where the debugger looks for it.
 */

import { stat } from "node:fs/promises";
import { url as inspectorUrl } from "node:inspector";
import { pathToFileURL } from "node:url";

/** Addresses that were imported as they are, with the version that they had. */
const plain = new Map<string, string>();

/** Names the version of a file as it is now. @throws what `stat` throws. */
export async function versionOfFile(file: string): Promise<string> {
  const { mtimeMs } = await stat(file);
  return `${pathToFileURL(file).href}?v=${mtimeMs}`;
}

/** What a version of {@link versionOfFile} exports. @throws whatever importing it throws. */
export function importFile(version: string): Promise<unknown> {
  const address = version.slice(0, version.lastIndexOf("?"));
  if (inspectorUrl() !== undefined && !plain.has(address)) plain.set(address, version);
  return import(plain.get(address) === version ? address : version);
}
