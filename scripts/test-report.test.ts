import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { describeFailure } from "./test-report.ts";

const failed = (properties: object) =>
  describeFailure(
    { name: "a/b.test.ts", line: undefined, error: Object.assign(new Error("test failed"), properties) },
    "a/b.test.ts",
  );

describe("describeFailure", () => {
  test("says which signal ended a file that reported nothing", () => {
    assert.match(failed({ signal: "SIGSEGV", exitCode: null }), /\n {2}its process was ended by SIGSEGV\n/);
  });

  test("says with which code a file ended that reported nothing", () => {
    assert.match(failed({ signal: null, exitCode: 7 }), /\n {2}its process ended with exit code 7\n/);
  });

  test("says nothing of the process where the error is a test's own", () => {
    assert.doesNotMatch(failed({}), /process/);
  });
});
