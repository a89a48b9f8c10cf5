/**
 * Inside a service: main -> service -> {http, nats, db} -> domain.
 *
 * V1: an arrow never points back: domain imports domain and errors.ts only; http, nats and db know neither each other nor
 *     service.ts; nothing imports main.ts.
 * V2: domain/ imports no NATS, HTTP or SQL, so that unit tests need no server.
 * V3: only main.ts and config.ts of a service touch `process`, and what makes up a child process of its own (…-main.ts);
 *     libraries only where processes are their subject.
 */

import { posix } from "node:path";
import {
  isDevelopmentOnly,
  isRelative,
  type Problem,
  packageOf,
  type SourceFile,
  type Workspace,
} from "./workspace.ts";

const EDGES = ["http", "nats", "db"];
/** What domain code must not see (V2). */
const EDGE_PACKAGES =
  /^(@nats-io\/.*|@hone\/(messaging|storage|service-kit)|hono|@hono\/.*|postgres|pg|drizzle-orm|node:(http|https|http2|net))$/;
/** Packages whose subject is the process itself: starting, ending and observing processes. */
const PROCESS_PACKAGES =
  /^(apps\/|scripts\/|test\/|examples\/|libs\/(embedded|sandbox|testing|service-kit)\/)/;
const PROCESS_FILE = /^services\/[^/]+\/src\/((main|config)|.*\/([\w-]+-main|memory-watch))\.ts$/;
const PROCESS_USE = /(?<![.\w"'`/-])process\.\w|from "node:process"/;

export function checkServices(workspace: Workspace): Problem[] {
  const services = workspace.packages.filter((each) => each.folder.startsWith("services/"));
  return [
    ...services.flatMap((service) =>
      service.files.flatMap((file) => checkArrows(file, `${service.folder}/src`)),
    ),
    ...workspace.packages.flatMap((each) => each.files.flatMap(checkProcess)),
  ];
}

/** The part of a service that a file belongs to: `main`, `service`, `config`, an edge, `domain`, or another folder. */
function partOf(path: string, source: string): string {
  const within = path.slice(source.length + 1);
  return within.includes("/") ? (within.split("/")[0] ?? "") : within.replace(/\.ts$/, "");
}

function checkArrows(file: SourceFile, source: string): Problem[] {
  if (!file.path.startsWith(`${source}/`) || isDevelopmentOnly(file.path)) return [];
  const from = partOf(file.path, source);
  const problems: Problem[] = [];
  for (const { specifier, line } of file.imports) {
    const report = (message: string) => problems.push({ path: file.path, line, message });
    if (!isRelative(specifier)) {
      if (from === "domain" && EDGE_PACKAGES.test(packageOf(specifier))) {
        report(`domain imports no NATS, HTTP or SQL: current value is ${specifier}`); // V2
      }
      continue;
    }
    const to = partOf(posix.join(posix.dirname(file.path), specifier), source);
    if (to === "main")
      report("nothing imports main.ts"); // V1
    else if (from === "domain" && to !== "domain" && to !== "errors")
      report(`domain imports domain and errors.ts only: current value is ${specifier}`);
    else if (EDGES.includes(from) && to !== from && (EDGES.includes(to) || to === "service")) {
      report(`${from} knows neither service.ts nor another edge: current value is ${specifier}`);
    }
  }
  return problems;
}

/** V3 */
function checkProcess(file: SourceFile): Problem[] {
  const isAllowed =
    PROCESS_PACKAGES.test(file.path) || PROCESS_FILE.test(file.path) || isDevelopmentOnly(file.path);
  if (isAllowed) return [];
  return file.text.split("\n").flatMap((text, index) => {
    const code = text.replace(/\/\/.*|^\s*\/?\*.*/, "");
    if (!PROCESS_USE.test(code)) return [];
    return [
      {
        path: file.path,
        line: index + 1,
        message: "only main.ts and config.ts of a service touch process: hand the value in",
      },
    ];
  });
}
