import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";

const ROOT = join(import.meta.dirname, "..");
const TIMEOUT_MS = 60_000;

const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
  scripts: Record<string, string>;
};
/** The scripts that run a program of the repository; the command line prints its usage in its own way. */
const programs = Object.entries(scripts).flatMap(([name, command]) => {
  const [, file] = /^node scripts\/bootstrap\.mjs (\S+)/.exec(command) ?? [];
  return file === undefined || file.startsWith("apps/") ? [] : [[name, file] as const];
});

function run(file: string, argument: string) {
  return spawnSync(process.execPath, [join(ROOT, file), argument], { encoding: "utf8", timeout: TIMEOUT_MS });
}

describe("every npm script", { timeout: 10 * TIMEOUT_MS }, () => {
  for (const [name, file] of programs) {
    test(`npm run ${name} prints its usage for --help and does nothing`, () => {
      const { status, stdout, stderr } = run(file, "--help");
      assert.equal(status, 0, stderr);
      assert.match(stdout, /^npm (run|test)/);
      assert.equal(stderr, "");
    });

    test(`npm run ${name} names an option that it does not know, above its usage`, () => {
      const { status, stdout, stderr } = run(file, "--no-such-option");
      assert.equal(status, 2);
      assert.match(stderr, /^Unknown option '--no-such-option'\.\n\nnpm (run|test)/);
      assert.doesNotMatch(stderr, /\n\s+at /);
      assert.equal(stdout, "");
    });
  }
});
