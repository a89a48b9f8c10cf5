/** The tree that the checks look at: packages and files, read once. Paths are relative to the repository and use `/`. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface SourceFile {
  readonly path: string;
  readonly text: string;
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

/** What a check found. */
export interface Problem {
  readonly path: string;
  readonly line?: number;
  readonly message: string;
}

export type Check = (workspace: Workspace) => Problem[];

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

/** Code that only tests run: tests, their helpers, benchmarks. Patterns of paths. */
export const DEVELOPMENT_ONLY = [
  "\\.(test|suite)\\.ts$",
  "^(test|bench)/",
  "/(bench|test|testing|fixtures)/",
  "/testing\\.ts$",
];
const DEVELOPMENT_ONLY_PATH = new RegExp(DEVELOPMENT_ONLY.join("|"));

export function isDevelopmentOnly(path: string): boolean {
  return DEVELOPMENT_ONLY_PATH.test(path);
}

export function readWorkspace(root: string): Workspace {
  const paths = listFiles(root, "");
  const read = (path: string) => readFileSync(join(root, path), "utf8");
  const source = (path: string): SourceFile => ({ path, text: read(path) });
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

function listFiles(root: string, folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) return SKIPPED_FOLDERS.has(entry.name) ? [] : listFiles(root, path);
      return entry.isFile() ? [path] : [];
    });
}
