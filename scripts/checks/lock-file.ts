/**
 * The lock file names the optional packages of every platform. `npm ci` refuses one that does not, and npm leaves
 * them out when it writes a lock file against a registry that lacks some of them.
 */

import type { Problem, Workspace } from "./workspace.ts";

export function checkLockFile(workspace: Workspace): Problem[] {
  const { packages } = workspace.lock;
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
