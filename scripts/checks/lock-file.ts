/**
 * The lock file names the optional packages of every platform, and the SHA-512 of every package that is fetched. `npm ci` refuses
 * one that lacks a package, and installs whatever a registry sends for one that has no hash. npm leaves both out when it writes a
 * lock file and the registry lacks the packages of some platforms: take another version of the tool then.
 */

import type { LockFile, Problem, Workspace } from "./workspace.ts";

const SHA512 = /^sha512-[A-Za-z0-9+/]{86}==$/;

export function checkLockFile({ lock }: Workspace): Problem[] {
  return [...lackingPackages(lock), ...lackingHashes(lock)];
}

function lackingPackages({ packages }: LockFile): Problem[] {
  const paths = Object.keys(packages);
  return Object.entries(packages).flatMap(([path, entry]) =>
    Object.keys(entry.optionalDependencies ?? {})
      .filter((name) => !paths.some((each) => each.endsWith(`node_modules/${name}`)))
      .map((name) => ({
        path: "package-lock.json",
        message: `lacks ${name}, an optional dependency of ${path || "the workspace"}: add it with version, os, cpu and "optional": true`,
      })),
  );
}

/** Links are the workspace's own packages, which are not fetched. */
function lackingHashes({ packages }: LockFile): Problem[] {
  return Object.entries(packages)
    .filter(([path, { link, integrity }]) => {
      const isFetched = /(^|\/)node_modules\//.test(path) && link !== true;
      return isFetched && !SHA512.test(integrity ?? "");
    })
    .map(([path, { integrity }]) => ({
      path: "package-lock.json",
      message: `has ${integrity === undefined ? "no integrity" : `the integrity "${integrity}"`} for ${path}: take a version whose SHA-512 the registry tells, and run npm install`,
    }));
}
