import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { eventually, isAlive } from "@hone/testing";
import { runProcessGroup } from "./process-group.ts";

const PATH = process.env.PATH ?? "/usr/bin:/bin";

function run(script: string, signal: AbortSignal = new AbortController().signal) {
  return runProcessGroup({
    command: ["sh", "-c", script],
    folder: tmpdir(),
    environment: { PATH, GIVEN: "1" },
    signal,
    maxTailBytes: 1_000,
  });
}

describe("runProcessGroup()", { timeout: 60_000 }, () => {
  test("returns the exit code and the last part of each output", async () => {
    const end = await run("echo said; echo wrong >&2; exit 3");
    assert.deepEqual(end, { kind: "exited", code: 3, stdout: "said\n", stderr: "wrong\n" });
  });

  test("gives the command only the given environment, and no input", async () => {
    const { stdout } = await run("cat; env | sort");
    assert.match(stdout, /^GIVEN=1$/m);
    assert.doesNotMatch(stdout, /^HOME=/m);
  });

  test("keeps the last bytes of a long output", async () => {
    const { stdout } = await run("i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done");
    assert.ok(stdout.length <= 1_000);
    assert.ok(stdout.endsWith("line 1999\n"));
  });

  test("reports a signal from outside, also one that only the command received", async () => {
    const end = await run("kill -KILL $$");
    assert.equal(end.kind === "killed" && end.signal, "SIGKILL");
  });

  test("reports a program that does not exist", async () => {
    const end = await runProcessGroup({
      command: ["no-such-program-of-hone"],
      folder: tmpdir(),
      environment: { PATH },
      signal: new AbortController().signal,
      maxTailBytes: 100,
    });
    assert.equal(end.kind, "not_started");
  });

  test("ends the processes that the command left behind, and the whole group when the signal aborts", async () => {
    const left = await run("sleep 600 >/dev/null 2>&1 & echo $!");
    await eventually("the end of the remaining process", () => !isAlive(Number(left.stdout)));
    const controller = new AbortController();
    const ending = run("sleep 600 & echo $!; wait", controller.signal);
    controller.abort();
    const end = await ending;
    assert.equal(end.kind, "killed");
  });

  test("the group ends when this process is killed", async () => {
    const folder = await mkdtemp(join(tmpdir(), "hone-group-"));
    const file = join(folder, "pid");
    const program = `
      import { runProcessGroup } from ${JSON.stringify(new URL("./process-group.ts", import.meta.url).href)};
      await runProcessGroup({
        command: ["sh", "-c", "echo $$ > pid.new && mv pid.new pid; sleep 600"],
        folder: ${JSON.stringify(folder)},
        environment: { PATH: ${JSON.stringify(PATH)} },
        signal: new AbortController().signal,
        maxTailBytes: 100,
      });`;
    const parent = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: "ignore" });
    try {
      const pid = await eventually("the command", async () => Number(await readFile(file, "utf8")));
      assert.ok(isAlive(pid));
      parent.kill("SIGKILL");
      await eventually("the end of the group", () => !isAlive(pid));
    } finally {
      parent.kill("SIGKILL");
      await rm(folder, { recursive: true });
    }
  });
});
