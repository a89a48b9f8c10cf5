import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { describe, test } from "node:test";
import { eventually, isAlive, temporaryFolder } from "@hone/testing";
import type { MeasuredProgram } from "../measure/measured-program.ts";
import { Contender, NOT_INSTALLED } from "./contender.ts";

const round = async (program: MeasuredProgram) => (await program.round<{ value: number }>()).value;
const start = (code: string) => Contender.start({ name: "it", args: ["-e", code] });

describe("a contender", () => {
  test("that fails is not asked again, and has the reason instead of figures", async () => {
    await using it = await start(`
      console.log("ready");
      require("node:readline").createInterface({ input: process.stdin }).once("line", () => {
        console.log('{"value": 7}');
        process.stdin.once("data", () => { console.error("RangeError: too large"); process.exit(3); });
      });`);
    assert.equal(await it.measure(round), 7);
    assert.equal(await it.measure(round), Number.NaN);
    assert.equal(await it.measure(() => assert.fail("it was asked")), Number.NaN);
    assert.deepEqual(it.figures([7]), { kind: "missing", reason: it.reason });
    assert.match(it.reason ?? "", /^cannot run: .*RangeError: too large/);
  });

  test("is stopped between rounds", async () => {
    await using it = await start(`
      console.log("ready");
      process.stdin.on("data", () => console.log(JSON.stringify({ value: 1 })));
      process.stdin.on("end", () => process.exit());`);
    const state = async () => /^State:\s+(\w)/m.exec(await readFile(`/proc/${it.pid}/status`, "utf8"))?.[1];
    await eventually("it to be stopped", async () => (await state()) === "T");
    assert.equal(await it.measure(round), 1);
    await eventually("it to be stopped again", async () => (await state()) === "T");
  });

  test("ends with a bench that a signal ends, even if it is stopped", async () => {
    const code = `
      const { Contender } = await import(${JSON.stringify(new URL("./contender.ts", import.meta.url).href)});
      const args = ["-e", 'console.log("ready"); process.stdin.on("end", () => process.exit()).resume()'];
      const it = await Contender.start({ name: "it", args });
      console.log(it.pid);
      setInterval(() => {}, 1e3);`;
    const bench = spawn(process.execPath, ["--input-type=module", "-e", code], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = await once(bench.stdout, "data");
    bench.kill("SIGTERM");
    const [, signal] = await once(bench, "exit");
    assert.equal(signal, "SIGTERM");
    await eventually("the end of its child", () => !isAlive(Number(String(line))));
  });

  test("that cannot start has the reason at once", async () => {
    await using it = await start("throw new TypeError('no such model')");
    assert.match(it.reason ?? "", /TypeError: no such model/);
  });

  test("is reported as a missing peer if its environment does not exist", async () => {
    await using folder = await temporaryFolder("peers");
    await using it = await Contender.startPeer("vLLM", folder.path, "vllm", ["generate_vllm.py", "model"]);
    assert.equal(it.reason, NOT_INSTALLED);
  });

  test("ends with its child processes", async () => {
    const it = await start(`
      const { pid } = require("node:child_process").spawn(process.execPath, ["-e", "setInterval(() => {}, 1e3)"]);
      console.log("ready");
      process.stdin.once("data", () => console.log(JSON.stringify({ value: pid })));
      process.stdin.once("end", () => process.exit());`);
    const child = await it.measure(round);
    assert.ok(isAlive(child));
    await it[Symbol.asyncDispose]();
    await eventually("the end of its child", () => !isAlive(child));
  });
});
