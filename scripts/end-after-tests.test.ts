import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";

const folder = mkdtempSync(join(tmpdir(), "hone-end-after-tests-"));
after(() => rmSync(folder, { recursive: true, force: true }));

/** Runs the text of a test file as `npm test` runs one. @returns what it reported. */
function runFile(name: string, text: string): { isOver: boolean; passed: number; failed: number } {
  const file = join(folder, name);
  writeFileSync(file, `import { test } from "node:test";\n${text}`);
  const preload = join(import.meta.dirname, "end-after-tests.ts");
  const env = { ...process.env };
  // Within a test run Node would take the file for a part of it.
  delete env.NODE_TEST_CONTEXT;
  const { status, stdout } = spawnSync(process.execPath, ["--import", preload, "--test-reporter=tap", file], {
    env,
    encoding: "utf8",
    timeout: 30_000,
  });
  const count = (line: RegExp) => stdout.match(line)?.length ?? 0;
  return { isOver: status !== null, passed: count(/^ok /gm), failed: count(/^not ok /gm) };
}

describe("a test file", () => {
  test("that leaves a timer behind ends, with its result", () => {
    const text = 'test("leaks", () => { setInterval(() => undefined, 1_000); });';
    assert.deepEqual(runFile("leak.test.mjs", text), { isOver: true, passed: 1, failed: 0 });
  });

  test("that leaves a timer behind and fails ends, with its failure", () => {
    const text = 'test("fails", () => { setInterval(() => undefined, 1_000); throw new Error("no"); });';
    assert.deepEqual(runFile("fail.test.mjs", text), { isOver: true, passed: 0, failed: 1 });
  });

  test("with many tests reports every one", () => {
    const text = "for (let i = 0; i < 300; i++) test(String(i), () => undefined);";
    assert.deepEqual(runFile("many.test.mjs", text), { isOver: true, passed: 300, failed: 0 });
  });
});
