/**
 * `node scripts/sbom.ts`: what npm installs in the image of the services, as CycloneDX on standard output. Part of
 * images/build.sh.
 *
 * It is read from the lock file as the Dockerfile installs it: dependencies and required peers, looked for from folder to folder
 * upwards, and the optional packages that Hone's own packages name, which are Deno for each platform. docs/dependencies.md says why
 * npm's own SBOM is not used.
 */

import { readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { ENTRIES } from "./image-context.ts";

interface LockedPackage {
  readonly version?: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly license?: string;
  /** A folder of this repository, which `resolved` names. */
  readonly link?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
}
type Lock = Readonly<Record<string, LockedPackage>>;

const MODULES = "node_modules/";
const root = join(import.meta.dirname, "..");
const { packages, version } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
  packages: Lock;
  version: string;
};
const components = installed(packages, ENTRIES)
  .filter((folder) => folder.includes(MODULES))
  .map((folder) => componentOf(nameOf(folder), packages[folder]!))
  .sort((a, b) => (a.purl < b.purl ? -1 : 1));
const metadata = { component: { type: "application", name: "hone", version } };
const bom = { bomFormat: "CycloneDX", specVersion: "1.5", version: 1, metadata, components };
console.log(JSON.stringify(bom, null, 2));

/** Folders that are reached from these, links followed. */
function installed(lock: Lock, from: readonly string[]): string[] {
  const found = new Set<string>();
  const open = [...from];
  for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
    const locked = lock[folder];
    if (locked === undefined || found.has(folder)) continue;
    if (locked.link) {
      open.push(locked.resolved ?? "");
      continue;
    }
    found.add(folder);
    const { dependencies = {}, peerDependencies = {}, peerDependenciesMeta = {} } = locked;
    const optional = folder.includes(MODULES) ? {} : (locked.optionalDependencies ?? {});
    const peers = Object.keys(peerDependencies).filter(
      (name) => peerDependenciesMeta[name]?.optional !== true,
    );
    for (const name of [...Object.keys(dependencies), ...Object.keys(optional), ...peers])
      open.push(placeOf(lock, folder, name));
  }
  return [...found];
}

/** Where a package finds another one: beside its own, or in a folder above. */
function placeOf(lock: Lock, folder: string, name: string): string {
  for (let at = folder; ; at = parentOf(at)) {
    const place = posix.join(at, MODULES, name);
    if (lock[place] !== undefined) return place;
    if (at === "") throw new Error(`the lock file has no ${name}, which ${folder} needs`);
  }
}

/** The folder above, out of a `node_modules`. */
function parentOf(folder: string): string {
  const above = posix.dirname(folder);
  if (above === ".") return "";
  return above.endsWith("/node_modules") || above === "node_modules" ? parentOf(above) : above;
}

function nameOf(folder: string): string {
  return folder.slice(folder.lastIndexOf(MODULES) + MODULES.length);
}

function componentOf(name: string, { version = "", integrity, license, resolved }: LockedPackage) {
  const [algorithm = "", digest = ""] = integrity?.split("-") ?? [];
  return {
    type: "library",
    name,
    version,
    purl: `pkg:npm/${name.replace("@", "%40")}@${version}`,
    ...(integrity !== undefined && {
      hashes: [
        { alg: algorithm.replace("sha", "SHA-"), content: Buffer.from(digest, "base64").toString("hex") },
      ],
    }),
    ...(license !== undefined && { licenses: [{ expression: license }] }),
    ...(resolved !== undefined && { externalReferences: [{ type: "distribution", url: resolved }] }),
  };
}
