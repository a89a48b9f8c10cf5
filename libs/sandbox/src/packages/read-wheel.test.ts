import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { strToU8 } from "fflate";
import { PackageError } from "../errors.ts";
import { makeWheel } from "../testing/make-wheel.ts";
import { MAX_WHEEL_FILES, readWheel } from "./read-wheel.ts";

const FILE = "tiny-1.0-py3-none-any.whl";
const FILES = { "tiny/__init__.py": "x = 1\n", "tiny/more.py": "", "single.py": "", "tiny/a, b.txt": "" };

/** Replaces a text in the bytes of a file by another of the same length. */
function replaced(bytes: Uint8Array, from: string, to: string): Uint8Array {
  assert.equal(from.length, to.length);
  return Buffer.from(Buffer.from(bytes).toString("latin1").replaceAll(from, to), "latin1");
}

/** A ZIP file whose only entry claims to unpack to almost four gigabytes. */
function claiming(bytes: Uint8Array): Uint8Array {
  const copy = Buffer.from(bytes);
  const entry = copy.indexOf("PK\x01\x02", 0, "latin1");
  copy.writeUInt32LE(0xff_00_00_00, entry + 24);
  return copy;
}

describe("readWheel()", () => {
  test("finds what can be imported, and what the package needs", () => {
    const metadata = [
      "Requires-Dist: Mp_Math (<1.4,>=1.1)",
      "Requires-Dist: numpy>=2; python_version >= '3.9'",
      "Requires-Dist: pytest; extra == 'dev'",
    ];
    assert.deepEqual(readWheel(FILE, makeWheel({ files: FILES, metadata })), {
      modules: ["single", "tiny"],
      needs: ["mp-math"],
      mayNeed: ["numpy"],
    });
  });

  const many = Object.fromEntries(Array.from({ length: MAX_WHEEL_FILES }, (_, i) => [`tiny/f${i}.py`, ""]));
  for (const [what, bytes, told] of [
    ["that is no ZIP file", strToU8("hello"), /is no ZIP file/],
    ["that is cut off", makeWheel({ files: FILES }).subarray(0, 200), /is no ZIP file/],
    [
      "without RECORD",
      makeWheel({ files: FILES, tamper: (f) => delete f["tiny-1.0.dist-info/RECORD"] }),
      /RECORD/,
    ],
    [
      "with a path that climbs out",
      makeWheel({ files: { ...FILES, "../evil.py": "" } }),
      /"\.\.\/evil\.py", leads out/,
    ],
    [
      "with a path that climbs out from within",
      makeWheel({ files: { "tiny/../../evil.py": "" } }),
      /leads out/,
    ],
    ["with an absolute path", makeWheel({ files: { "/lib/evil.py": "" } }), /leads out/],
    ["with a path of Windows", makeWheel({ files: { "..\\evil.py": "" } }), /leads out/],
    ["with a drive", makeWheel({ files: { "C:evil.py": "" } }), /leads out/],
    ["with a NUL in a path", makeWheel({ files: { "tiny/a\0.py": "" } }), /leads out/],
    [
      "with two files of one name",
      replaced(makeWheel({ files: { "aa.py": "1", "ab.py": "2" } }), "ab.py", "aa.py"),
      /holds aa\.py twice/,
    ],
    [
      "with a changed file",
      makeWheel({ files: FILES, tamper: (f) => (f["tiny/more.py"] = strToU8("import os")) }),
      /RECORD does not have tiny\/more\.py/,
    ],
    [
      "with an added file",
      makeWheel({ files: FILES, tamper: (f) => (f["sitecustomize.py"] = strToU8("")) }),
      /RECORD does not have sitecustomize\.py/,
    ],
    [
      "that lacks a file",
      makeWheel({ files: FILES, tamper: (f) => delete f["tiny/more.py"] }),
      /lacks tiny\/more\.py/,
    ],
    ["that claims gigabytes", claiming(makeWheel({ files: FILES })), /unpacks to more than/],
    ["with too many files", makeWheel({ files: many }), /more than 20000 files/],
  ] as const) {
    test(`refuses a wheel ${what}`, () => {
      assert.throws(
        () => readWheel(FILE, bytes),
        (error) => {
          assert.ok(error instanceof PackageError, String(error));
          assert.match(error.message, told);
          return true;
        },
      );
    });
  }
});
