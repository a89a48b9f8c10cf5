/** Files and folders that one can take in at a look. Fixtures and generated code may be as large as they are. */

import { isDevelopmentOnly, isGenerated, type Problem, type Workspace } from "./workspace.ts";

const MAX_LINES = 400;
const MAX_FILES = 15;
const CODE = /\.(ts|mjs|js|py|css)$/;

/** Folders that may hold more files, with the reason. */
const LARGE_FOLDERS: Readonly<Record<string, string>> = {
  "apps/cli/src/commands": "each file is one command, named as it is typed",
};

export function checkSizes({ texts }: Workspace): Problem[] {
  const code = texts.filter(
    ({ path }) => CODE.test(path) && !isGenerated(path) && !path.includes("/fixtures/"),
  );
  return [...code.flatMap(checkLines), ...checkFolders(code.map(({ path }) => path))];
}

function checkLines({ path, text }: { readonly path: string; readonly text: string }): Problem[] {
  const lines = text.trimEnd().split("\n").length;
  if (lines <= MAX_LINES) return [];
  return [{ path, message: `has ${lines} lines, and may have ${MAX_LINES}; split it by subject` }];
}

function checkFolders(paths: readonly string[]): Problem[] {
  const numFiles = new Map<string, number>();
  for (const path of paths.filter((each) => /^bench\//.test(each) || !isDevelopmentOnly(each))) {
    const folder = path.slice(0, path.lastIndexOf("/"));
    if (!path.endsWith(".test.ts")) numFiles.set(folder, (numFiles.get(folder) ?? 0) + 1);
  }
  const tooLarge = [...numFiles].filter(
    ([folder, count]) => count > MAX_FILES && LARGE_FOLDERS[folder] === undefined,
  );
  const stale = Object.keys(LARGE_FOLDERS).filter((folder) => {
    const count = numFiles.get(folder);
    return count !== undefined && count <= MAX_FILES;
  });
  return [
    ...tooLarge.map(([path, count]) => ({
      path,
      message: `holds ${count} files, and may hold ${MAX_FILES}; give it rooms by subject, or a reason in scripts/checks/sizes.ts`,
    })),
    ...stale.map((path) => ({ path, message: "needs its reason in scripts/checks/sizes.ts no longer" })),
  ];
}
