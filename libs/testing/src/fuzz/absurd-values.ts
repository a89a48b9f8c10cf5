/** Values that programs often handle wrongly, by type: limits of ranges, NaN, texts with a meaning elsewhere. */

import fc from "fast-check";

const MAX_UINT32 = 2 ** 32 - 1;
const MAX_UINT64 = 2n ** 64n - 1n;
/** Deeper than any parser should accept, and than the call stack of a recursive one allows. */
const DEEP = 20_000;

export const absurdUint32 = fc.oneof(
  fc.constantFrom(0, 1, 2, 7, 2 ** 15, 2 ** 31 - 1, 2 ** 31, MAX_UINT32),
  fc.integer({ min: 0, max: MAX_UINT32 }),
);

export const absurdInt32 = fc.oneof(
  fc.constantFrom(0, 1, -1, 2 ** 31 - 1, -(2 ** 31)),
  fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
);

export const absurdUint64 = fc.oneof(
  fc.constantFrom(0n, 1n, 2n ** 31n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 63n - 1n, 2n ** 63n, MAX_UINT64),
  fc.bigInt({ min: 0n, max: MAX_UINT64 }),
);

export const absurdInt64 = fc.oneof(
  fc.constantFrom(0n, -1n, 2n ** 53n, 2n ** 63n - 1n, -(2n ** 63n)),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
);

export const absurdDouble = fc.oneof(
  fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0, -1, 1e308, 5e-324),
  fc.double(),
);

/** Names with a special meaning in subjects, paths, SQL or JavaScript, and others. */
const WORDS = [
  "",
  " ",
  "a b",
  "a.b",
  "*",
  ">",
  "../../etc/passwd",
  "/",
  "\u0000",
  "a\u0000b",
  "\r\nhone-object: x",
  "__proto__",
  "constructor",
  "';drop table runs;--",
  "train",
  "\uFEFF",
  "\u202E",
  "\u{1F600}",
  "-1",
  "NaN",
];

/** Texts that are not JSON, or unexpected JSON. */
const JSON_TEXTS = [
  "{",
  "[]",
  "{}",
  "null",
  "0",
  "1e999",
  '"text"',
  "[null]",
  '{"__proto__":{"polluted":true}}',
  '{"kind":"constructor"}',
  '{"a":"\\u0000"}',
  '{"a":"\\ud800"}',
  `${"[".repeat(DEEP)}${"]".repeat(DEEP)}`,
  `${'{"a":'.repeat(DEEP)}1${"}".repeat(DEEP)}`,
];

export const absurdText = fc.oneof(
  { arbitrary: fc.constantFrom(...WORDS), weight: 4 },
  { arbitrary: fc.constantFrom(...JSON_TEXTS), weight: 3 },
  { arbitrary: fc.json(), weight: 2 },
  { arbitrary: fc.string({ unit: "binary", maxLength: 40 }), weight: 3 },
  { arbitrary: fc.constant("x".repeat(10_000)), weight: 1 },
);

/** One absurd value of any JSON type, for objects that are checked key by key. */
export const absurdJson: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(null, true, false, [], {}, [null], -1, 0, 0.5, 1e9, 2 ** 53, 1e308, -0),
  fc.constantFrom(...WORDS),
  fc.jsonValue({ maxDepth: 3 }),
);
