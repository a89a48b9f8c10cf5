/**
 * A row of the conformance table: which golden cases it answers, by which of Hone's functions, and what of them it leaves to
 * others. Another family adds a file of rows beside these and its name in `table.ts`.
 */

import assert from "node:assert/strict";
import { familyOf, type GoldenCase, type Question } from "./golden.ts";

/** Numbers of any nesting. */
export type Numbers = number | readonly Numbers[];

/** One comparison. */
export interface Check {
  /** What is compared; the field of `expected` where it is one. */
  readonly field: string;
  readonly actual: Numbers;
  /** @default the case's `expected[field]` */
  readonly expected?: Numbers;
  /** The quirk because of which `expected` is another than the case's. */
  readonly quirk?: string;
  /** Whether the case's tolerance of metrics holds. */
  readonly isMetric?: boolean;
}

export interface Row {
  /** `system/family`. */
  readonly family: string;
  /** Functions of the reference; all of the family where absent. */
  readonly functions?: readonly string[];
  /** Part of the name that cases must have. */
  readonly named?: string;
  /** Hone's name of it. */
  readonly hone: string;
  /** For each quirk of these cases what Hone does. */
  readonly quirks?: Readonly<Record<string, string>>;
  /** Fields of `expected` that are not compared, and why. */
  readonly leaves?: Readonly<Record<string, string>>;
  answer(question: Question): readonly Check[];
}

export function isAnswered(row: Pick<Row, "family" | "functions" | "named">, golden: GoldenCase): boolean {
  return (
    row.family === familyOf(golden) &&
    (row.functions?.includes(golden.function) ?? true) &&
    (row.named === undefined || golden.name.includes(row.named))
  );
}

/** Compares what a row answers, and that it leaves nothing out unsaid. */
export function assertAnswered(row: Row, question: Question): void {
  const { golden } = question;
  const untold = (golden.quirks ?? []).filter((quirk) => row.quirks?.[quirk] === undefined);
  assert.deepEqual(untold, [], `${golden.name}: the table does not say what Hone does about ${untold}`);
  const checks = row.answer(question);
  const answered = new Set(checks.map(({ field }) => field));
  const missing = Object.keys(golden.expected).filter(
    (field) => !answered.has(field) && row.leaves?.[field] === undefined,
  );
  assert.deepEqual(missing, [], `${golden.name}: nothing is said of ${missing}`);
  for (const check of checks) assertClose(golden, check);
}

function assertClose(golden: GoldenCase, { field, actual, expected, quirk, isMetric = false }: Check): void {
  const { relative, absolute, metrics } = golden.tolerance;
  const wanted = expected ?? (golden.expected[field] as Numbers);
  const found = flatten(actual);
  const want = flatten(wanted);
  const name = `${golden.name}: ${field}${quirk === undefined ? "" : ` (${quirk})`}`;
  assert.equal(
    found.length,
    want.length,
    `${name} has ${found.length} numbers, and ${want.length} are expected`,
  );
  found.forEach((value, index) => {
    const bound = absolute + (isMetric ? metrics : relative) * Math.abs(want[index]!);
    const distance = Math.abs(value - want[index]!);
    assert.ok(distance <= bound, `${name}[${index}] is ${value}, and ${want[index]} is expected`);
  });
}

function flatten(numbers: Numbers): number[] {
  return typeof numbers === "number" ? [numbers] : numbers.flatMap(flatten);
}
