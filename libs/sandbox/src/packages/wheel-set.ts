/** Packages with which processes of the sandbox start. */

import { createHash } from "node:crypto";

/** One wheel that was checked. */
export interface Wheel {
  /** Name of the package, in the form in which names are compared. */
  readonly name: string;
  readonly version: string;
  readonly fileName: string;
  /** Of the file, as hexadecimal digits. */
  readonly sha256: string;
  readonly bytes: Uint8Array;
  /** Whether it holds code for WebAssembly. */
  readonly isCompiled: boolean;
  /** What can be imported. */
  readonly modules: readonly string[];
}

export class WheelSet {
  /** No packages: the standard library alone. */
  static readonly none: WheelSet = new WheelSet([]);
  readonly wheels: readonly Wheel[];
  /** The same for two sets of the same files; empty for none. */
  readonly key: string;

  /** @param wheels ordered by file name. */
  constructor(wheels: readonly Wheel[]) {
    this.wheels = wheels;
    const hash = createHash("sha256");
    for (const { fileName, sha256 } of wheels) hash.update(`${fileName}\n${sha256}\n`);
    this.key = wheels.length === 0 ? "" : hash.digest("hex");
  }

  /** Size of all files. */
  get numBytes(): number {
    return this.wheels.reduce((sum, { bytes }) => sum + bytes.length, 0);
  }

  /** What a run records: `sympy 1.14.0 sha256:…` for each. */
  get materials(): readonly string[] {
    return this.wheels.map(({ name, version, sha256 }) => `${name} ${version} sha256:${sha256}`);
  }
}
