/** docs/security.md is true only while each of its boundaries has a test: the tests that it names must be there. */

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";

const REPOSITORY = path.join(import.meta.dirname, "..");
const PAGE = readFileSync(path.join(REPOSITORY, "docs", "security.md"), "utf8");

/** Rows of the tables below "Boundaries": boundary, what holds, tests. */
function boundaries(): readonly (readonly string[])[] {
  const [, below = ""] = PAGE.split(/^## Boundaries$/m);
  const [tables = ""] = below.split(/^## /m);
  const rows = tables.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("| boundary |"));
  return rows.map((row) => row.split(" | ").map((cell) => cell.replace(/^\| | \|$/g, "")));
}

/** Paths in the last cell; a bare file name lies beside the path before it. */
function testsOf(cell: string): readonly string[] {
  let folder = "";
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => {
    const file = name.includes("/") ? name : path.join(folder, name);
    folder = path.dirname(file);
    return file;
  });
}

describe("the security page", () => {
  test("has boundaries", () => assert.ok(boundaries().length > 30, `${boundaries().length} rows`));

  for (const cells of boundaries()) {
    const [boundary = "", , tests = ""] = cells;
    test(`names tests that exist for: ${boundary}`, () => {
      assert.equal(cells.length, 3, "a row has three cells");
      const named = testsOf(tests);
      assert.notDeepEqual(named, []);
      for (const file of named) {
        assert.match(file, /(\.test\.ts|\/)$/, "a test, or a folder of tests");
        assert.ok(existsSync(path.join(REPOSITORY, file)), `${file} does not exist`);
      }
    });
  }
});
