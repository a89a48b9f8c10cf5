/** Where things lie in the repository. */

import path from "node:path";

export const REPOSITORY = path.resolve(import.meta.dirname, "..", "..");

/** A measured program of the bench itself. */
export function benchProgram(name: string): string {
  return path.join(import.meta.dirname, "programs", name);
}
