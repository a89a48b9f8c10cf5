/**
 * The same files in the same places.
 *
 * Y1: a library has src/index.ts: a comment that says its purpose, then named re-exports and nothing else. One of
 *     generated code may export its files instead.
 * Y2: a service has src/main.ts of at most 60 lines, src/config.ts, src/service.ts and a README.
 * Y3: packages are named after their folder, files are kebab-case, nothing is a default export.
 * Y4: what tests share of one folder is its `testing.ts`, or where that is several files, its folder `testing/`; what several
 *     packages share is in libs/testing, and whole stacks are in test/support.
 */

import { isGenerated, type Package, type Problem, type SourceFile, type Workspace } from "./workspace.ts";

const MAX_MAIN_LINES = 60;
const SERVICE_FILES = ["src/main.ts", "src/config.ts", "src/service.ts", "README.md"];
const KEBAB_CASE = /^[a-z0-9]+(-[a-z0-9]+)*(\.(int|full))?(\.(test|suite))?\.ts$/;

export function checkLayout(workspace: Workspace): Problem[] {
  const files = [...workspace.packages.flatMap((each) => each.files), ...workspace.looseFiles];
  return [
    ...workspace.packages.flatMap(checkPackage),
    ...checkTestSupport(files.map(({ path }) => path)),
    ...files.filter((file) => !isGenerated(file.path)).flatMap(checkFile),
  ];
}

function checkPackage(each: Package): Problem[] {
  const problems: Problem[] = [];
  const report = (path: string, message: string) => problems.push({ path, message });
  const [group, folder] = each.folder.split("/");
  if (folder !== undefined && each.name !== `@hone/${folder}`) {
    report(
      `${each.folder}/package.json`,
      `the package is called ${each.name}; name it @hone/${folder}, after its folder`,
    ); // Y3
  }
  if (group === "libs") {
    const index = each.files.find((file) => file.path === `${each.folder}/src/index.ts`);
    if (index !== undefined) problems.push(...checkIndex(index));
    else if (each.exports.includes(".")) report(each.folder, "has no src/index.ts"); // Y1
  }
  if (group === "services") {
    for (const path of SERVICE_FILES.filter((path) => !each.paths.includes(path)))
      report(each.folder, `has no ${path}`); // Y2
    const main = each.files.find((file) => file.path === `${each.folder}/src/main.ts`);
    const lines = main?.text.trimEnd().split("\n").length ?? 0;
    if (lines > MAX_MAIN_LINES)
      report(`${each.folder}/src/main.ts`, `has ${lines} lines, and may have ${MAX_MAIN_LINES}`);
  }
  return problems;
}

/** Y1 */
function checkIndex(index: SourceFile): Problem[] {
  const { path } = index;
  if (!index.text.startsWith("/**"))
    return [{ path, message: "does not begin with a comment that says what the package is for" }];
  const code = index.text.replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*/g, "");
  if (/export \*/.test(code))
    return [{ path, message: "exports everything of a file by export *; name what it exports" }];
  const rest = code.replace(/export (type )?\{[^}]*\} from "[^"]+";/g, "").trim();
  if (rest === "") return [];
  return [{ path, message: `has code of its own, where only re-exports belong: ${rest.split("\n")[0]}` }];
}

/** Y4 */
function checkTestSupport(paths: readonly string[]): Problem[] {
  const folders = new Set(paths.map((path) => path.slice(0, path.lastIndexOf("/"))));
  return paths.flatMap((path) => {
    if (/\/testing-[^/]+\.ts$/.test(path)) {
      return [
        {
          path,
          message: "is shared by tests; name it testing.ts, or give it a plain name in a folder testing/",
        },
      ];
    }
    if (!path.endsWith("/testing.ts") || !folders.has(path.slice(0, -".ts".length))) return [];
    return [{ path, message: "stands beside a folder testing/; move it there under a plain name" }];
  });
}

function checkFile(file: SourceFile): Problem[] {
  const { path, text } = file;
  const problems: Problem[] = [];
  const name = path.split("/").at(-1) ?? "";
  if (!KEBAB_CASE.test(name)) problems.push({ path, message: `${name} is not in kebab-case` }); // Y3
  if (/^export default /m.test(text))
    problems.push({ path, message: "has a default export; export it by name" });
  return problems;
}
