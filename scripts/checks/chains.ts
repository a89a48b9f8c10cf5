/**
 * The longest chain of files inside a service or the command line in which each imports the next one when the program runs: whoever
 * follows the first file's code may have to open all of them. Imports of types alone do not count.
 */

import type { ImportGraph } from "./import-graph.ts";
import { isDevelopmentOnly, type Problem } from "./workspace.ts";

const MAX_FILES = 9;
const READ_AS_ONE = /^(?:services|apps)\/[^/]+\//;

export function checkChains(graph: ImportGraph): Problem[] {
  const longest = new Map<string, readonly string[]>();
  const chainFrom = (path: string): readonly string[] => {
    const known = longest.get(path);
    if (known !== undefined) return known;
    // A circle is found by another rule: here it only has to end.
    longest.set(path, [path]);
    const folder = READ_AS_ONE.exec(path)?.[0] ?? "";
    const next = (graph.imports.get(path) ?? [])
      .filter(
        ({ target, isTypeOnly }) => target.startsWith(folder) && !isTypeOnly && !isDevelopmentOnly(target),
      )
      .map(({ target }) => chainFrom(target));
    const chain = [path, ...next.reduce((best, each) => (each.length > best.length ? each : best), [])];
    longest.set(path, chain);
    return chain;
  };
  const byFolder = new Map<string, readonly string[]>();
  for (const path of graph.imports.keys()) {
    const folder = READ_AS_ONE.exec(path)?.[0];
    if (folder === undefined || isDevelopmentOnly(path)) continue;
    const chain = chainFrom(path);
    if (chain.length > (byFolder.get(folder)?.length ?? 0)) byFolder.set(folder, chain);
  }
  return [...byFolder]
    .filter(([, chain]) => chain.length > MAX_FILES)
    .map(([folder, chain]) => ({
      path: folder.slice(0, -1),
      message: `its longest chain of imports has ${chain.length} files, and may have ${MAX_FILES}: ${chain.map((path) => path.slice(folder.length)).join(" -> ")}`,
    }));
}
