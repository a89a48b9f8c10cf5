/** Paths in the repository. */

import path from "node:path";

export const REPOSITORY = path.resolve(import.meta.dirname, "..", "..");

/** Path of one of the bench's measured programs. */
export function benchProgram(name: string): string {
  return path.join(import.meta.dirname, "programs", name);
}
