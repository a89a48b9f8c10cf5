import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";

const ROOT = path.join(import.meta.dirname, "..");
/** what | limit | `CONSTANT` in `file` */
const ROW = /^\|[^|]+\| (\d+) \| `([A-Z_]+)` in `([^`]+)` \|$/gm;
/** A constant that is a product or a power of numbers. */
const NUMBERS = /^[\d_*. ]+$/;

describe("docs/limits.md", () => {
  const rows = [...readFileSync(path.join(ROOT, "docs/limits.md"), "utf8").matchAll(ROW)];

  test("has its tables", () => assert.ok(rows.length > 30, `${rows.length} rows`));

  test("states every constant as its file does", () => {
    const wrong = rows.flatMap(([, stated, name, file]) => {
      const source = readFileSync(path.join(ROOT, file!), "utf8");
      const expression = new RegExp(`^(?:export )?const ${name} = ([^;]+);`, "m").exec(source)?.[1];
      if (expression === undefined || !NUMBERS.test(expression)) return [`${name}: no number in ${file}`];
      const value = numberOf(expression);
      return value === Number(stated) ? [] : [`${name}: ${stated} on the page, ${value} in ${file}`];
    });
    assert.deepEqual(wrong, []);
  });
});

/** Products and powers: `16 * 1024 * 1024`, `8 * 1024 ** 3`. */
function numberOf(expression: string): number {
  return expression
    .split(/(?<!\*)\*(?!\*)/)
    .map((factor) => factor.split("**").map((part) => Number(part.trim().replaceAll("_", ""))))
    .reduce((product, [base, exponent = 1]) => product * base! ** exponent, 1);
}
