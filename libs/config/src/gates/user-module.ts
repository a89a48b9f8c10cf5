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

/** A file in one version, which passed the gate (code-gate.ts). */
export class UserModule {
  // Private, so that no other object of this shape is taken for one.
  readonly #version: string;

  /** @param version of {@link versionOfFile}. */
  constructor(version: string) {
    this.#version = version;
  }

  /** Names the file as it is now; another version has another name. */
  get version(): string {
    return this.#version;
  }

  /** What the file exports. @throws whatever importing it throws. */
  load(): Promise<unknown> {
    const address = this.#version.slice(0, this.#version.lastIndexOf("?"));
    if (inspectorUrl() !== undefined && !plain.has(address)) plain.set(address, this.#version);
    return import(plain.get(address) === this.#version ? address : this.#version);
  }
}

/** Names the version of a file as it is now. @throws what `stat` throws. */
export async function versionOfFile(file: string): Promise<string> {
  const { mtimeMs } = await stat(file);
  return `${pathToFileURL(file).href}?v=${mtimeMs}`;
}
