/**
 * A user's module, imported once per version of its file: after a change it is imported again, and code that holds the older
 * version keeps it.
 *
 * Node caches modules by their URL, so a version's URL contains the time of its file, as `?v=…`. While a debugger is attached,
 * the first version is imported by the file's plain URL, where the debugger looks for it.
 */

import { stat } from "node:fs/promises";
import { url as inspectorUrl } from "node:inspector";
import { pathToFileURL } from "node:url";

/** Plain URLs that were imported, each with the version that it had. */
const plain = new Map<string, string>();

/** One version of a file that the gate allowed (code-gate.ts). */
export class UserModule {
  // A private field, so that the compiler accepts no other object of this shape.
  readonly #version: string;

  /** @param version the result of {@link versionOfFile}. */
  constructor(version: string) {
    this.#version = version;
  }

  /** Identifies the file in its present state; other versions of it have other values. */
  get version(): string {
    return this.#version;
  }

  /** @returns what the file exports. @throws whatever importing it throws. */
  load(): Promise<unknown> {
    const address = this.#version.slice(0, this.#version.lastIndexOf("?"));
    if (inspectorUrl() !== undefined && !plain.has(address)) plain.set(address, this.#version);
    return import(plain.get(address) === this.#version ? address : this.#version);
  }
}

/** @returns the URL of a file in its present version. @throws what `stat` throws. */
export async function versionOfFile(file: string): Promise<string> {
  const { mtimeMs } = await stat(file);
  return `${pathToFileURL(file).href}?v=${mtimeMs}`;
}
