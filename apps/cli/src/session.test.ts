import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { text } from "node:stream/consumers";
import { describe, test } from "node:test";

/** What shells report for a process that was interrupted. */
const INTERRUPTED = 130;
const MAIN = path.join(import.meta.dirname, "main.ts");

/** Runs a command whose output nobody reads, as `head` leaves it. */
async function runUnread(...args: string[]): Promise<{ code: number | null; errors: string }> {
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  child.stdout.destroy();
  const [errors, [code]] = await Promise.all([text(child.stderr), once(child, "exit")]);
  return { code, errors };
}

describe("a command whose reader has gone", () => {
  test("ends without a stack trace", async () => {
    const { code, errors } = await runUnread("validate", "examples/01-frozen-lake/run.yaml");
    assert.equal(errors, "");
    assert.ok(code === 0 || code === INTERRUPTED, `exit code ${code}`);
  });

  test("prints its help to nobody", async () => {
    assert.deepEqual(await runUnread("--help"), { code: 0, errors: "" });
  });
});
