/**
 * Answers from other servers are read up to a bound (libs/core/src/async/read-text.ts). `text()`, `json()` and the like read an
 * answer for as long as its server sends, so code that runs in production does not call them.
 *
 * Three kinds of calls are allowed: on `c.req`, a request to one of Hone's own servers, whose route has a limit; on a `reader` of
 * protobuf, which has its whole message in memory already; and in the tracer's page, which runs in a browser and asks nobody but the
 * tracer, as its policy forbids.
 */

import {
  isDevelopmentOnly,
  isGenerated,
  type Problem,
  type SourceFile,
  type Workspace,
} from "./workspace.ts";

/** Called without arguments: `c.json(value)` of a server answers. */
const READS_ALL = /(?<!\b(?:req|reader))\??\.\s*(text|json|arrayBuffer|bytes|blob|formData)\(\s*\)/g;

const PAGE = "services/tracer/src/http/page/";

export function checkAnswers(workspace: Workspace): Problem[] {
  return workspace.packages
    .filter(({ folder }) => /^(apps|libs|services)\//.test(folder))
    .flatMap(({ files }) => files)
    .filter(({ path }) => !isDevelopmentOnly(path) && !isGenerated(path) && !path.startsWith(PAGE))
    .flatMap(checkFile);
}

function checkFile({ path, text }: SourceFile): Problem[] {
  const code = text.replace(/\/\*[\s\S]*?\*\/|(?<!:)\/\/[^\n]*/g, (whole) => whole.replace(/[^\n]/g, " "));
  return [...code.matchAll(READS_ALL)].map(({ 1: method, index }) => ({
    path,
    line: code.slice(0, index).split("\n").length,
    message: `reads an answer without a bound by ${method}(): readText() and readBytes() of @hone/core take one`,
  }));
}
