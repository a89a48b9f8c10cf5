import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { kernelWalls } from "./kernel-walls.ts";

/** A service that runs an endless loop and prints the id of the process that runs it. */
const SERVICE = `
import { readFileSync } from "node:fs";
const { PythonSandbox } = await import(process.argv[1]);
const sandbox = new PythonSandbox({ maxProcesses: 1 });
const session = sandbox.open();
const limits = { timeMs: 300_000, maxOutputBytes: 100 };
const { signal } = new AbortController();
await session.run("1", limits, signal);
void session.run("while True: pass", limits, signal);
console.log(readFileSync("/proc/" + process.pid + "/task/" + process.pid + "/children", "utf8").trim().split(" ").at(-1));
`;

describe("the kernel's walls", { timeout: 120_000 }, () => {
  test("are reported by name, or with the reason why there are none", async () => {
    const { names, reason } = await kernelWalls();
    assert.ok(names.length > 0 ? reason === "" : reason.length > 10, reason);
  });

  test("endless code ends with the process that started it, however that process dies", async (t) => {
    const { names } = await kernelWalls();
    if (names.length === 0) return t.skip("there are none here");
    const module = path.join(import.meta.dirname, "..", "python-sandbox.ts");
    const service = spawn(process.execPath, ["--input-type=module", "-e", SERVICE, module], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [told] = (await once(service.stdout, "data")) as [Buffer];
    const pid = Number(told.toString());
    assert.match(readFileSync(`/proc/${pid}/status`, "utf8"), /^Seccomp:\t2$/m);
    service.kill("SIGKILL");
    await once(service, "exit");
    for (let i = 0; i < 100 && isRunning(pid); i++) await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal(isRunning(pid), false);
  });
});

/** @returns whether the process runs; a zombie does not count. */
function isRunning(pid: number): boolean {
  if (!existsSync(`/proc/${pid}/stat`)) return false;
  return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
}
