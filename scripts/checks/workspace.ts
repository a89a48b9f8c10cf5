/**
 * What the boundary checks look at: packages, source files and their imports, read once.
 *
 * Paths are relative to the repository and use `/`. Imports are found in the text: the code is formatted, and
 * comments are cut out first, so a few patterns see them all, type-only ones included.
 */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface Import {
  readonly specifier: string;
  /** Erased at run time. */
  readonly isTypeOnly: boolean;
  readonly line: number;
}

export interface SourceFile {
  readonly path: string;
  readonly text: string;
  readonly imports: readonly Import[];
}

export interface Package {
  /** Such as `@hone/core`. */
  readonly name: string;
  /** Such as `libs/core`. */
  readonly folder: string;
  readonly dependencies: readonly string[];
  /** Subpaths that other packages may import: `.`, `./testing`. */
  readonly exports: readonly string[];
  /** TypeScript files of the package, tests included. */
  readonly files: readonly SourceFile[];
  /** All its files, by path within the package. */
  readonly paths: readonly string[];
}

export interface Workspace {
  readonly packages: readonly Package[];
  /** Dependencies that the root package.json declares: tools, and what tests and scripts may use. */
  readonly rootDependencies: readonly string[];
  /** TypeScript files outside of any package: scripts, examples. */
  readonly looseFiles: readonly SourceFile[];
  /** Every text file, for rules about text. */
  readonly texts: readonly { readonly path: string; readonly text: string }[];
  /** The parsed package-lock.json. */
  readonly lock: LockFile;
}

export interface LockFile {
  readonly packages: Readonly<
    Record<
      string,
      {
        readonly optionalDependencies?: Readonly<Record<string, string>>;
        /** Whether it is a package of the workspace itself. */
        readonly link?: boolean;
        /** Hash of what is fetched. */
        readonly integrity?: string;
      }
    >
  >;
}

/** What a rule found. */
export interface Problem {
  readonly path: string;
  readonly line?: number;
  readonly message: string;
}

export type Rule = (workspace: Workspace) => Problem[];

const SKIPPED_FOLDERS = new Set([
  "node_modules",
  ".git",
  ".hone",
  ".turbo",
  ".venv",
  "coverage",
  "__pycache__",
]);
const PACKAGE_GROUPS = ["libs", "services", "apps"];
const TEXT_FILE =
  /\.(ts|mts|mjs|js|json|md|proto|yaml|yml|sh|py|html|css|sql|txt|toml)$|(^|\/)(Dockerfile|run|\.npmrc|\.gitignore)$/;
const GENERATED = /^libs\/[a-z]+-(proto|gen)\/src\/(?!index\.ts$)/;

/** Whether a file was written by a generator: rules about style do not hold for it. */
export function isGenerated(path: string): boolean {
  return GENERATED.test(path);
}

/** Code that only tests run: tests, their helpers, benchmarks. */
export function isDevelopmentOnly(path: string): boolean {
  return /\.(test|suite)\.ts$|^(test|bench)\/|\/(bench|test|testing|fixtures)\/|\/testing-[a-z-]+\.ts$|\/testing\.ts$/.test(
    path,
  );
}

export function readWorkspace(root: string): Workspace {
  const paths = listFiles(root, "");
  const read = (path: string) => readFileSync(join(root, path), "utf8");
  const source = (path: string): SourceFile => {
    const text = read(path);
    return { path, text, imports: findImports(text) };
  };
  const isSource = (path: string) => path.endsWith(".ts") && !path.endsWith(".d.ts");
  const manifests = paths.filter((path) =>
    /^(libs|services|apps)\/[^/]+\/package\.json$|^(test|bench)\/package\.json$/.test(path),
  );
  const folders = manifests.map((path) => path.slice(0, -"/package.json".length));
  const packages = folders.map((folder): Package => {
    const manifest = JSON.parse(read(`${folder}/package.json`)) as Manifest;
    const own = paths.filter((path) => path.startsWith(`${folder}/`));
    return {
      name: manifest.name,
      folder,
      dependencies: Object.keys({ ...manifest.dependencies, ...manifest.devDependencies }),
      exports: Object.keys(manifest.exports ?? {}),
      files: own.filter(isSource).map(source),
      paths: own.map((path) => path.slice(folder.length + 1)),
    };
  });
  const rootManifest = JSON.parse(read("package.json")) as Manifest;
  return {
    packages,
    rootDependencies: Object.keys({ ...rootManifest.dependencies, ...rootManifest.devDependencies }),
    looseFiles: paths
      .filter(
        (path) =>
          isSource(path) &&
          !PACKAGE_GROUPS.includes(path.split("/")[0] ?? "") &&
          !/^(test|bench)\//.test(path),
      )
      .map(source),
    texts: paths
      .filter((path) => TEXT_FILE.test(path) && path !== "package-lock.json")
      .map((path) => ({ path, text: read(path) })),
    lock: JSON.parse(read("package-lock.json")) as LockFile,
  };
}

interface Manifest {
  readonly name: string;
  readonly dependencies?: Record<string, string>;
  readonly devDependencies?: Record<string, string>;
  readonly exports?: Record<string, unknown>;
}

const IMPORT_PATTERNS = [
  // import x from "y", import type { x } from "y", export { x } from "y"; over several lines too
  /^\s*(?:import|export)\s+(type\s)?[^"';()]*?\sfrom\s*"([^"]+)"/gm,
  // import "y"
  /^\s*import\s+()"([^"]+)"/gm,
  // import("y"), import.meta.resolve("y"), require.resolve("y")
  /\b(?:import|import\.meta\.resolve|require|require\.resolve)\(()\s*"([^"]+)"/g,
];

/** Finds what a file imports, in order of appearance. */
export function findImports(text: string): Import[] {
  const code = withoutComments(text);
  const found: Import[] = [];
  for (const pattern of IMPORT_PATTERNS) {
    for (const match of code.matchAll(pattern)) {
      const at = match.index + match[0].indexOf('"');
      found.push({
        specifier: match[2] ?? "",
        isTypeOnly: Boolean(match[1]),
        line: code.slice(0, at).split("\n").length,
      });
    }
  }
  return found.sort((a, b) => a.line - b.line);
}

/** Blanks comments out and keeps the line numbers. Strings stay, as the specifiers are strings. */
function withoutComments(text: string): string {
  return text.replace(
    /("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`)|\/\*[\s\S]*?\*\/|\/\/[^\n]*/g,
    (whole, string: string | undefined) => string ?? whole.replace(/[^\n]/g, " "),
  );
}

/** The package part of a bare specifier: `@a/b/c` -> `@a/b`. */
export function packageOf(specifier: string): string {
  const parts = specifier.split("/");
  return specifier.startsWith("@") ? parts.slice(0, 2).join("/") : (parts[0] ?? "");
}

export function isRelative(specifier: string): boolean {
  return specifier.startsWith("./") || specifier.startsWith("../");
}

function listFiles(root: string, folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) return SKIPPED_FOLDERS.has(entry.name) ? [] : listFiles(root, path);
      return entry.isFile() ? [path] : [];
    });
}
