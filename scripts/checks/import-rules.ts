/**
 * Who may import whom, as rules of dependency-cruiser; types count as everything else does.
 *
 *   apps/cli -> services/* -> service-kit agents train embedded -> messaging storage hub checkpoint tokenizer
 *            -> config nn -> rl telemetry tensor sandbox -> core proto-gen onnx-proto otlp-proto
 *   inside a service: main -> service -> {http, nats, db} -> domain
 */

import type { IReachabilityForbiddenRuleType, IRegularForbiddenRuleType } from "dependency-cruiser";
import { DEVELOPMENT_ONLY } from "./workspace.ts";

export type ImportRule = IRegularForbiddenRuleType | IReachabilityForbiddenRuleType;

/** From left to right: a package imports packages of groups to the right of its own. */
const GROUPS: readonly (readonly string[])[] = [
  ["apps/cli"],
  ["services/[^/]+"],
  ["libs/service-kit", "libs/agents", "libs/train", "libs/embedded"],
  ["libs/messaging", "libs/storage", "libs/hub", "libs/checkpoint", "libs/tokenizer"],
  ["libs/config", "libs/nn"],
  ["libs/rl", "libs/telemetry", "libs/tensor", "libs/sandbox"],
  ["libs/core", "libs/proto-gen", "libs/onnx-proto", "libs/otlp-proto"],
];
/** They stand outside of the order, as only development needs them: they use libraries of any group. */
const OUTSIDE = ["libs/testing", "test", "bench"];
/** The only package of the project that they import is `core`. */
const CORE_ONLY = ["libs/rl", "libs/tokenizer"];
/** They load in a moment, and so do the packages that they import. */
const LIGHT = ["libs/core", "libs/config", "libs/rl", "libs/proto-gen", "libs/tokenizer"];

const PACKAGE = "(libs/[^/]+|services/[^/]+|apps/[^/]+|test|bench)";
const HEAVY = modules("onnxruntime-(node|common)", "postgres", "pg", "drizzle-orm", "@nats-io/[^/]+");
/** What talks to the bus, to HTTP and to the database. */
const EDGE_MODULES = [
  "^libs/(messaging|storage|service-kit)/",
  "^(http|https|http2|net)$",
  modules("@nats-io/[^/]+", "hono", "@hono/[^/]+", "postgres", "pg", "drizzle-orm"),
];

export const IMPORT_RULES: readonly ImportRule[] = [
  rule("no file imports itself through others, not for a type either", {}, { circular: true }),
  rule("what is imported must exist, and a package must export it", {}, { couldNotResolve: true }),
  rule(
    "a package is entered by its exports, not by a relative path",
    // What npm links as the command starts the repository's own launcher.
    { path: `^${PACKAGE}/`, pathNot: "^apps/cli/bin/" },
    {
      path: "^(libs|services|apps|test|bench|scripts|examples)/",
      pathNot: "^$1/",
      dependencyTypes: ["local"],
    },
  ),
  ...GROUPS.map((members, group) =>
    rule(
      "a package imports packages of groups to its right only",
      { path: `^(${members.join("|")})/`, pathNot: DEVELOPMENT_ONLY },
      {
        path: `^(${GROUPS.slice(0, group + 1)
          .flat()
          .join("|")})/`,
        pathNot: "^$1/",
      },
    ),
  ),
  rule(
    "rl and tokenizer import @hone/core only, of the project's packages",
    { path: `^(${CORE_ONLY.join("|")})/`, pathNot: DEVELOPMENT_ONLY },
    { path: `^${PACKAGE}/`, pathNot: ["^$1/", "^libs/core/"] },
  ),
  // For tests too: what they need of another service they get over the bus.
  rule(
    "a service imports no other service",
    { path: "^(services/[^/]+)/" },
    { path: "^services/", pathNot: "^$1/" },
  ),
  rule(
    "only the command line imports services",
    { pathNot: "^(services|apps/cli)/" },
    { path: "^services/" },
  ),
  rule("nobody imports bench", { pathNot: "^bench/" }, { path: "^bench/" }),
  rule("only bench imports test", { pathNot: "^(test|bench)/" }, { path: "^test/" }),
  rule(
    "what only tests need stays out of production",
    { path: "^(libs|services|apps)/", pathNot: DEVELOPMENT_ONLY },
    { path: DEVELOPMENT_ONLY, pathNot: "node_modules/" },
  ),
  {
    name: "a light package stays light, through all that it imports",
    severity: "error",
    from: { path: `^(${LIGHT.join("|")})/`, pathNot: DEVELOPMENT_ONLY },
    to: { path: HEAVY, reachable: true },
  },
  rule(
    "domain imports domain and errors.ts only",
    { path: "^(services/[^/]+/src)/domain/", pathNot: DEVELOPMENT_ONLY },
    { path: "^$1/", pathNot: "^$1/(domain/|errors\\.ts$)" },
  ),
  rule(
    "domain knows no NATS, HTTP or SQL",
    { path: "^services/[^/]+/src/domain/", pathNot: DEVELOPMENT_ONLY },
    { path: EDGE_MODULES },
  ),
  rule(
    "http, nats and db know neither each other nor service.ts",
    { path: "^(services/[^/]+/src)/(http|nats|db)/", pathNot: DEVELOPMENT_ONLY },
    { path: "^$1/((http|nats|db)/|service\\.ts$)", pathNot: "^$1/$2/" },
  ),
  rule(
    "nothing imports main.ts",
    { path: "^(services/[^/]+)/src/", pathNot: DEVELOPMENT_ONLY },
    { path: "^$1/src/main\\.ts$" },
  ),
];

/** Whether a package has its place: in a group, or outside of them. */
export function hasPlace(folder: string): boolean {
  return new RegExp(`^(${[...GROUPS.flat(), ...OUTSIDE].join("|")})$`).test(folder);
}

function rule(
  name: string,
  from: IRegularForbiddenRuleType["from"],
  to: IRegularForbiddenRuleType["to"],
): IRegularForbiddenRuleType {
  return { name, severity: "error", from, to };
}

/** Packages of node_modules, whether they are installed or not. */
function modules(...names: readonly string[]): string {
  return `(^|node_modules/)(${names.join("|")})(/|$)`;
}
