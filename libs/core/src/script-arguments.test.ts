import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseScriptArguments, UsageError } from "./script-arguments.ts";

const SCRIPT = {
  usage: "npm run copy -- [--quick] FROM TO",
  options: { quick: { type: "boolean", default: false }, rounds: { type: "string" } },
  positionals: ["FROM", "TO"],
} as const;

const parse = (...args: string[]) => parseScriptArguments(args, SCRIPT);
const refusal = (...args: string[]): UsageError => {
  try {
    parse(...args);
  } catch (error) {
    if (error instanceof UsageError) return error;
    throw error;
  }
  throw new Error(`${args.join(" ")} was accepted`);
};

describe("parseScriptArguments()", () => {
  test("returns the options and the positional arguments", () => {
    const { values, positionals } = parse("a", "--quick", "b", "--rounds=3");
    assert.equal(values.quick, true);
    assert.equal(values.rounds, "3");
    assert.deepEqual(positionals, ["a", "b"]);
  });

  for (const flag of ["--help", "-h"]) {
    test(`returns the usage for ${flag}, even if an argument is missing`, () => {
      const { message, exitCode } = refusal(flag);
      assert.equal(message, SCRIPT.usage);
      assert.equal(exitCode, 0);
    });
  }

  const wrong: [args: string[], reason: RegExp][] = [
    [["--nonsense", "a", "b"], /^Unknown option '--nonsense'\.\n\nnpm run copy/],
    [["--rounds", "a", "b"], /^TO is missing\.\n/],
    [["--quick=3", "a", "b"], /quick.*does not take an argument/],
    [["a"], /^TO is missing\.\n/],
    [["a", "b", "c"], /^"c" is not expected\.\n/],
  ];
  for (const [args, reason] of wrong) {
    test(`says what is wrong with ${args.join(" ")}`, () => {
      const { message, exitCode } = refusal(...args);
      assert.match(message, reason);
      assert.ok(message.endsWith(SCRIPT.usage));
      assert.equal(exitCode, 2);
    });
  }
});
