import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { familyOf, type GoldenCase, golden, Question } from "./testing/golden.ts";
import { ENTROPY_FAMILY } from "./testing/losses/entropy-cases.ts";
import { assertAnswered, isAnswered } from "./testing/row.ts";
import { LOSS_ROWS, ROWS } from "./testing/table.ts";

const REPOSITORY = path.join(import.meta.dirname, "../../../../..");
/** Where what engines compute is compared, and by which cases. */
const ENGINE_TESTS: Readonly<Record<string, RegExp>> = {
  "libs/train/src/losses/conformance.test.ts": /\bLOSS_CASES\b/,
  "services/trainer/src/fsdp/fsdp-losses.test.ts": /\bLOSS_CASES\b/,
  "libs/train/src/graph/head-loss.test.ts": /\bENTROPY_CASES\b/,
};

/* Hone's algorithms against the numbers of verl and ROLL. Where Hone differs on purpose, the row of the table names the quirk. */

describe("golden cases", () => {
  const byFunction = Map.groupBy(golden.cases, (each) => `${familyOf(each)}: ${each.function}`);
  for (const [name, cases] of byFunction) {
    const claimed = cases.filter((each) => rowsOf(each).length > 0);
    if (claimed.length === 0) continue;
    const [row] = rowsOf(claimed[0]!);
    test(`${name} is ${row!.hone} (${claimed.length} cases)`, () => {
      for (const each of claimed) {
        const rows = rowsOf(each);
        assert.equal(rows.length, 1, `${each.name} is claimed by ${rows.length} rows`);
        assertAnswered(rows[0]!, new Question(each));
      }
    });
  }

  test("a case is put to the engines by one row at most, and they run the test that asks them", () => {
    for (const each of golden.cases) {
      const rows = LOSS_ROWS.filter((row) => isAnswered(row, each));
      assert.ok(rows.length <= 1, `${each.name} is claimed by ${rows.length} rows`);
    }
    for (const [file, cases] of Object.entries(ENGINE_TESTS)) {
      assert.match(readFileSync(path.join(REPOSITORY, file), "utf8"), cases, file);
    }
  });

  test("each case is claimed by a row", () => {
    const unclaimed = golden.cases.filter(
      (each) => claimsOf(each).length === 0 && familyOf(each) !== ENTROPY_FAMILY,
    );
    assert.deepEqual(
      unclaimed.map(({ name }) => name),
      [],
    );
  });

  test("each row answers a case", () => {
    for (const row of [...ROWS, ...LOSS_ROWS]) {
      assert.ok(
        golden.cases.some((each) => isAnswered(row, each)),
        `no case is answered by the row of ${row.family} ${row.hone}`,
      );
    }
  });
});

/** Rows that answer a case, the engines' included. */
function claimsOf(each: GoldenCase) {
  return [...ROWS, ...LOSS_ROWS].filter((row) => isAnswered(row, each));
}

function rowsOf(each: GoldenCase) {
  return ROWS.filter((row) => isAnswered(row, each));
}
