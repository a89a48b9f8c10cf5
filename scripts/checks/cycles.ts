/**
 * No file imports itself through others, not for a type either: what runs first would depend on who was asked for first, and
 * a reader could not understand one of the files without the other.
 */

import { posix } from "node:path";
import { isRelative, type Package, type Problem, type SourceFile, type Workspace } from "./workspace.ts";

export function checkCycles(workspace: Workspace): Problem[] {
  return workspace.packages.flatMap(findCycles);
}

function findCycles(each: Package): Problem[] {
  const byPath = new Map(each.files.map((file) => [file.path, file]));
  const problems: Problem[] = [];
  const done = new Set<string>();
  const visit = (file: SourceFile, trail: readonly string[]) => {
    const at = trail.indexOf(file.path);
    if (at >= 0) {
      const cycle = [...trail.slice(at), file.path].map((path) => path.slice(each.folder.length + 1));
      problems.push({ path: file.path, message: `imports itself: ${cycle.join(" -> ")}` });
      return;
    }
    if (done.has(file.path)) return;
    for (const { specifier } of file.imports) {
      if (!isRelative(specifier)) continue;
      const next = byPath.get(posix.join(posix.dirname(file.path), specifier));
      if (next !== undefined) visit(next, [...trail, file.path]);
    }
    done.add(file.path);
  };
  for (const file of each.files) visit(file, []);
  return problems;
}
