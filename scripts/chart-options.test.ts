/** The tables in the chart's README name every option, with the default that it has. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { parse } from "yaml";
import { readOptions, withOptions } from "./chart-options.ts";

const CHART = path.join(import.meta.dirname, "..", "helm", "hone");
const values = readFileSync(path.join(CHART, "values.yaml"), "utf8");
const readme = readFileSync(path.join(CHART, "README.md"), "utf8");

/** Paths of all values that are no maps with keys of the chart's own. */
function leavesOf(value: unknown, above: readonly string[], isOption: (path: string) => boolean): string[] {
  const own = above.join(".");
  if (isOption(own) || value === null || typeof value !== "object" || Array.isArray(value)) return [own];
  return Object.entries(value).flatMap(([key, below]) => leavesOf(below, [...above, key], isOption));
}

describe("the README of the chart", () => {
  const options = readOptions(values);
  const pathOf = ({ group, path: below }: (typeof options)[number]) =>
    below === "" ? group : `${group}.${below}`;

  test("has the options that values.yaml has: npm run generate was run", () => {
    assert.equal(readme, withOptions(readme, values));
  });

  test("leaves out no option, and says what each is for", () => {
    const known = new Set(options.map(pathOf));
    assert.ok(known.size > 200, `${known.size} options`);
    assert.deepEqual(
      leavesOf(parse(values), [], (each) => known.has(each)).filter((each) => !known.has(each)),
      [],
    );
    assert.deepEqual(options.filter(({ meaning }) => meaning === "").map(pathOf), []);
    for (const option of options) {
      const names = [`| \`${pathOf(option)}\` |`, `| \`<component>.${option.path}\` |`];
      const rows = readme.split("\n").filter((line) => names.some((name) => line.startsWith(name)));
      const isThere = rows.some(
        (line) => line.includes(option.group) && line.includes(option.meaning.replaceAll("|", "\\|")),
      );
      assert.ok(isThere, pathOf(option));
    }
  });

  test("names no option in its text that there is not", () => {
    const roots = Object.keys(parse(values) as object).join("|");
    const text = readme.slice(0, readme.indexOf("## Options"));
    for (const [, name = ""] of text.matchAll(new RegExp(`\\b((?:${roots})(?:\\.[a-zA-Z]+)+)`, "g"))) {
      const isThere = options.some(
        (option) => pathOf(option) === name || pathOf(option).startsWith(`${name}.`),
      );
      assert.ok(isThere, name);
    }
  });
});
