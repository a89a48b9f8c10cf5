/**
 * Which file imports which, and what the rules forbid of it, by dependency-cruiser.
 *
 * dependency-cruiser reads TypeScript by the compiler's API, which version 7 of `typescript` does not have: it gets version 6,
 * installed as `typescript-6`, and so sees imports of types as well.
 */

import { registerHooks } from "node:module";
import type { ICruiseResult, IViolation } from "dependency-cruiser";
import type { ImportRule } from "./import-rules.ts";
import type { Problem } from "./workspace.ts";

export interface Import {
  /** As the code names it, such as `./wait.ts`, `@hone/core` or `zod`; Node's own modules without `node:`. */
  readonly specifier: string;
  /** The file that is imported, by path within the tree, or the name of a module of Node. */
  readonly target: string;
  readonly isNodes: boolean;
  /** Whether it imports types alone, which nothing is left of when the program runs. */
  readonly isTypeOnly: boolean;
}

export interface ImportGraph {
  /** Source file, by path within the tree -> what it imports, types included. */
  readonly imports: ReadonlyMap<string, readonly Import[]>;
  readonly problems: readonly Problem[];
}

// Imported after the hook is there, as it looks for compilers while it loads.
registerHooks({
  resolve: (specifier, context, next) =>
    next(
      context.parentURL?.includes("/dependency-cruiser/") === true
        ? specifier.replace(/^typescript(?=$|\/)/, "typescript-6")
        : specifier,
      context,
    ),
});
const { cruise } = await import("dependency-cruiser");

/** Folders whose files import each other. */
const FOLDERS = ["libs", "services", "apps", "test", "bench", "scripts", "examples"];
/**
 * @param root the tree; packages are found in its `node_modules`.
 * @param folders the folders of it that are there.
 * @param forbidden the rules.
 */
export async function readImportGraph(
  root: string,
  forbidden: readonly ImportRule[],
  folders: readonly string[] = FOLDERS,
): Promise<ImportGraph> {
  const { output } = await cruise(
    [...folders],
    {
      baseDir: root,
      ruleSet: { forbidden: [...forbidden] },
      validate: true,
      tsPreCompilationDeps: true,
      doNotFollow: { path: "(^|/)node_modules/" },
      exclude: { path: "/fixtures/" },
    },
    { conditionNames: ["import", "node", "default"], exportsFields: ["exports"] },
  );
  if (typeof output === "string")
    throw new Error(`dependency-cruiser printed what it should return: ${output}`);
  return { imports: importsOf(output), problems: output.summary.violations.map(problemOf) };
}

function importsOf({ modules }: ICruiseResult): Map<string, Import[]> {
  const files = modules.filter(
    ({ source, dependencies }) => dependencies.length > 0 || /\.m?[jt]s$/.test(source),
  );
  return new Map(
    files.map(({ source, dependencies }) => [
      source,
      dependencies.map(({ module, resolved, coreModule, dependencyTypes }) => ({
        specifier: module,
        target: resolved,
        isNodes: coreModule,
        isTypeOnly: dependencyTypes.includes("type-only"),
      })),
    ]),
  );
}

function problemOf({ from, to, rule, cycle, via, unresolvedTo }: IViolation): Problem {
  const way = (cycle ?? via ?? []).map(({ name }) => name);
  if (way.length > 0) return { path: from, message: `${rule.name}: ${[from, ...way].join(" -> ")}` };
  return { path: from, message: `${rule.name}: it imports ${unresolvedTo ?? to}` };
}
