/**
 * Answers from outside are read up to a bound (libs/core/src/async/read-text.ts): `text()`, `json()` and their like of an answer
 * read for as long as its server sends.
 *
 * A1: code that runs in production calls none of them. Of a request that a server of Hone takes, `c.req`, they are bounded by the
 *     limit of its route; a `reader` of protobuf has its message whole already.
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

export function checkAnswers(workspace: Workspace): Problem[] {
  return workspace.packages
    .filter(({ folder }) => /^(apps|libs|services)\//.test(folder))
    .flatMap(({ files }) => files)
    .filter(({ path }) => !isDevelopmentOnly(path) && !isGenerated(path))
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
