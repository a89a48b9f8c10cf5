/**
 * What a container image is made from: `node scripts/image-context.ts FOLDER` lays it out there.
 *
 * In: the services, the command line, and the libraries that they need, without tests; package.json of every package, as
 * `npm ci` compares them with the lock file; the notices. The list is computed from what package.json declares, so a
 * library that a service begins to use is in the image without anybody remembering it.
 */

import { cpSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isDevelopmentOnly, readWorkspace, type Workspace } from "./checks/workspace.ts";

const ROOT = join(import.meta.dirname, "..");
const ROOT_FILES = ["package.json", "package-lock.json", ".npmrc", "README.md"];
/** What has a main of its own in the image. */
export const ENTRIES = [
  "services/agent-rollout",
  "services/dataset",
  "services/inference-gateway",
  "services/judge",
  "services/tracer",
  "services/trainer",
  "apps/cli",
] as const;

/** Folders of the packages that an image holds: the entries, and all that they depend on. */
export function packagesOfImage(workspace: Workspace): string[] {
  const byName = new Map(workspace.packages.map((each) => [each.name, each]));
  const seen = new Set<string>();
  const visit = (folder: string) => {
    if (seen.has(folder)) return;
    seen.add(folder);
    for (const name of runtimeDependencies(folder)) {
      const next = byName.get(name);
      if (next !== undefined) visit(next.folder);
    }
  };
  for (const folder of ENTRIES) visit(folder);
  return [...seen].sort();
}

/** Names that a package declares for run time. */
export function runtimeDependencies(folder: string): string[] {
  const manifest = JSON.parse(readFileSync(join(ROOT, folder, "package.json"), "utf8")) as {
    dependencies?: Record<string, string>;
  };
  return Object.keys(manifest.dependencies ?? {});
}

/** Every file of the context, by path within the repository. */
export function filesOfImage(workspace: Workspace): string[] {
  const folders = packagesOfImage(workspace);
  const own = workspace.packages
    .filter(({ folder }) => folders.includes(folder))
    .flatMap(({ folder, paths }) => paths.map((path) => `${folder}/${path}`))
    .filter((path) => !isLeftOut(path));
  const manifests = workspace.packages.map(({ folder }) => `${folder}/package.json`);
  return [...new Set([...ROOT_FILES, ...manifests, ...own])].sort();
}

/** Tests, what only they need, and what people read. */
function isLeftOut(path: string): boolean {
  return isDevelopmentOnly(path) || /\/tests\/|\.md$/.test(path);
}

/** Copies the context. */
export function layOut(folder: string): number {
  const files = filesOfImage(readWorkspace(ROOT));
  for (const path of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    cpSync(join(ROOT, path), join(folder, path));
  }
  return files.length;
}

if (process.argv[1] === import.meta.filename) {
  const folder = process.argv[2];
  if (folder === undefined || folder.startsWith("-")) {
    console.error("usage: node scripts/image-context.ts FOLDER");
    process.exitCode = 2;
  } else console.log(`${layOut(folder)} files in ${folder}`);
}
