/** Reads the spec of the model that an inference server was started with, if its folder can be read here. */

import path from "node:path";
import { inspectMerged } from "@hone/checkpoint";
import type { ModelSpec } from "@hone/nn";

/** @returns undefined for an id of the hub, a folder of another file system, and a family that Hone does not know. */
export async function readStartSpec(place: string): Promise<ModelSpec | undefined> {
  if (!path.isAbsolute(place)) return undefined;
  try {
    return (await inspectMerged(place)).spec;
  } catch {
    // Then nothing is compared, and the server itself refuses weights that do not fit.
    return undefined;
  }
}
