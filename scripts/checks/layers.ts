/**
 * Who may import whom:
 *
 *   apps/cli -> services/* -> service-kit agents train embedded -> messaging storage hub checkpoint tokenizer
 *            -> config nn -> rl telemetry tensor sandbox -> core proto-gen onnx-proto otlp-proto
 *
 * L1: a group imports groups to its right only, never its own: neither in code nor in package.json.
 * L2: `rl` and `tokenizer` import `core` only, of the project's own packages.
 * L3: services never import services, and nobody imports a service (the command line may, for one process).
 * L4: `testing` and every helper of tests are for tests and benches: nothing that runs in production imports them.
 * L5: light packages stay light, through everything that they import.
 */

import { posix } from "node:path";
import { isDevelopmentOnly, type Package, type Problem, packageOf, type Workspace } from "./workspace.ts";

const GROUPS: readonly (readonly string[])[] = [
  ["apps/cli"],
  ["services/*"],
  ["libs/service-kit", "libs/agents", "libs/train", "libs/embedded"],
  ["libs/messaging", "libs/storage", "libs/hub", "libs/checkpoint", "libs/tokenizer"],
  ["libs/config", "libs/nn"],
  ["libs/rl", "libs/telemetry", "libs/tensor", "libs/sandbox"],
  ["libs/core", "libs/proto-gen", "libs/onnx-proto", "libs/otlp-proto"],
];
const CORE_ONLY = ["libs/rl", "libs/tokenizer"];
const LIGHT = ["libs/core", "libs/config", "libs/rl", "libs/proto-gen", "libs/tokenizer"];
const HEAVY = /^(onnxruntime-(node|common)|postgres|pg|drizzle-orm|@nats-io\/.*)$/;
const TESTING = "libs/testing";

export function checkLayers(workspace: Workspace): Problem[] {
  return [
    ...workspace.packages.flatMap((from) => checkPackage(from, workspace)),
    ...workspace.packages
      .filter((each) => LIGHT.includes(each.folder))
      .flatMap((each) => checkLight(each, workspace)),
  ];
}

/** Development only, outside of the order: they use libraries of any group; only the bench uses what `test` offers. */
const OUTSIDE = [TESTING, "test", "bench"];

/** 0 is the leftmost group; undefined for what stands outside of the order. */
function groupOf(folder: string): number | undefined {
  const group = GROUPS.findIndex(
    (members) => members.includes(folder) || members.includes(folder.replace(/\/.*/, "/*")),
  );
  return group < 0 ? undefined : group;
}

function checkPackage(from: Package, workspace: Workspace): Problem[] {
  const byName = new Map(workspace.packages.map((each) => [each.name, each]));
  const problems: Problem[] = [];
  const own = groupOf(from.folder);
  const isKnown = own !== undefined || OUTSIDE.includes(from.folder);
  if (!isKnown) {
    problems.push({ path: from.folder, message: "stands in no layer: name it in scripts/checks/layers.ts" });
  }
  const check = (name: string, path: string, line?: number) => {
    const to = byName.get(name);
    if (to === undefined || to === from) return;
    const reason = forbidden(from, to, path);
    if (reason !== undefined)
      problems.push({ path, ...(line === undefined ? {} : { line }), message: reason });
  };
  for (const file of from.files) {
    for (const { specifier, line } of file.imports) {
      check(packageOf(specifier), file.path, line);
      const target = specifier.startsWith(".") ? posix.join(posix.dirname(file.path), specifier) : "";
      if (isDevelopmentOnly(target) && !isDevelopmentOnly(file.path)) {
        problems.push({ path: file.path, line, message: `${target} is for tests only` }); // L4
      }
    }
  }
  return problems;
}

function forbidden(from: Package, to: Package, path: string): string | undefined {
  if (to.folder === TESTING) {
    return isDevelopmentOnly(path) ? undefined : `${to.name} is for tests only`; // L4
  }
  if (to.folder === "bench" || (to.folder === "test" && from.folder !== "bench"))
    return `nobody imports ${to.name}`;
  // Tests may start servers and stand outside of the order; services stay closed to them as well.
  if (to.folder.startsWith("services/") && from.folder !== "apps/cli")
    return `nobody imports a service: ${to.name}`; // L3
  const fromGroup = groupOf(from.folder);
  const toGroup = groupOf(to.folder);
  if (fromGroup === undefined || toGroup === undefined || isDevelopmentOnly(path)) return undefined;
  if (CORE_ONLY.includes(from.folder) && to.folder !== "libs/core") {
    return `${from.name} imports @hone/core only: current value is ${to.name}`; // L2
  }
  if (toGroup > fromGroup) return undefined;
  return `${from.name} may import groups to its right only: ${to.name} stands ${toGroup === fromGroup ? "in its own group" : "to its left"}`; // L1
}

/** L5 */
function checkLight(light: Package, workspace: Workspace): Problem[] {
  const byName = new Map(workspace.packages.map((each) => [each.name, each]));
  const problems: Problem[] = [];
  const seen = new Set<Package>();
  const visit = (each: Package, by: readonly string[]) => {
    if (seen.has(each)) return;
    seen.add(each);
    for (const file of each.files.filter((one) => !isDevelopmentOnly(one.path))) {
      for (const found of file.imports) {
        const name = packageOf(found.specifier);
        const next = byName.get(name);
        if (next !== undefined) visit(next, [...by, next.name]);
        if (!HEAVY.test(name)) continue;
        const through = by.length === 0 ? "" : ` (through ${by.join(" -> ")})`;
        problems.push({
          path: file.path,
          line: found.line,
          message: `${light.name} must stay light: it imports ${name}${through}`,
        });
      }
    }
  };
  visit(light, []);
  return problems;
}
