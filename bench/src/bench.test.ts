import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { temporaryFolder } from "@hone/testing";
import { parseOptions } from "./options.ts";
import { formatNumber, formatSection, measured, missing, type Report } from "./report/report.ts";
import { summarise } from "./report/summarise.ts";
import { REPOSITORY } from "./repository.ts";

const NAMES = ["limits", "bus"];

describe("the bench", () => {
  test("measures, prints a table and writes it as JSON", async () => {
    await using folder = await temporaryFolder("bench");
    const jsonFile = path.join(folder.path, "deep", "bench.json");
    const args = ["--quick", "--only", "bus", "--json", jsonFile];
    const { code, output } = await runBench("main.ts", folder.path, args);
    assert.equal(code, 0, output);
    const report = JSON.parse(await readFile(jsonFile, "utf8")) as Report;
    assert.ok(report.isQuick && report.durationSeconds > 0 && report.machine.includes("Node"));
    assert.deepEqual(
      report.sections.map(({ name }) => name),
      ["bus"],
    );
    const rows = report.sections.flatMap((section) => section.rows);
    for (const row of rows) {
      assert.ok(output.includes(row.name) && row.unit !== "" && row.meaning !== "");
      if (row.kind === "measured")
        assert.ok(row.values.length === 1 && row.values.every((value) => value > 0));
    }
    const withReason = rows.flatMap((row) => (row.kind === "missing" ? [[row.name, row.reason]] : []));
    assert.deepEqual(withReason, [
      ["call, Ray", "not installed"],
      ["Hone to Ray", "not installed"],
    ]);
  });
});

describe("the bench of peers", () => {
  test("reports that the model is not installed", async () => {
    await using folder = await temporaryFolder("peers");
    const jsonFile = path.join(folder.path, "peers.json");
    const { code, output } = await runBench("peers.ts", folder.path, ["--quick", "--json", jsonFile]);
    assert.equal(code, 0, output);
    assert.match(output, /smollm2: not installed/);
    assert.deepEqual((JSON.parse(await readFile(jsonFile, "utf8")) as { comparisons: [] }).comparisons, []);
  });
});

/** @param peersFolder folder of the installed peers */
async function runBench(program: string, peersFolder: string, args: readonly string[]) {
  const env = { ...process.env, PEERS: peersFolder };
  const child = spawn(process.execPath, [path.join(REPOSITORY, "bench/src", program), ...args], {
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => {
      output += String(chunk);
    });
  }
  const [code] = (await once(child, "close")) as [number | null];
  return { code, output };
}

describe("parseOptions()", () => {
  test("runs the chosen sections in the bench's order", () => {
    assert.deepEqual(parseOptions(["--only", "bus,limits"], NAMES, {}).only, NAMES);
    assert.deepEqual(parseOptions([], NAMES, {}).only, NAMES);
  });

  test("refuses unknown values, and lists the allowed ones", () => {
    assert.throws(() => parseOptions(["--only", "buss"], NAMES, {}), /--only is buss.*one of limits, bus/);
    assert.throws(() => parseOptions(["--rounds", "0"], NAMES, {}), /--rounds is 0.*from 1 to 100/);
    assert.throws(() => parseOptions(["--fast"], NAMES, {}), /--fast/);
  });

  test("finds peers in the folder of PEERS", () => {
    assert.equal(parseOptions([], NAMES, { PEERS: "elsewhere" }).peersFolder, "elsewhere");
  });
});

describe("a table", () => {
  test("shows median, best and spread of the rounds, and why a figure is missing", () => {
    const lines = formatSection({
      name: "s",
      title: "Section",
      rows: [
        measured("calls", "calls/s", [1_000, 3_000, 2_000], "more is better"),
        measured("time", "ms", [4, 2, 3], "less is better", "lower"),
        missing("peer", "calls/s", "not installed", "a peer"),
      ],
    });
    assert.deepEqual(
      lines.map((line) => line.replace(/ {2,}/g, " | ")),
      [
        "Section",
        " | median | best | spread | unit | what it says",
        "calls | 2,000 | 3,000 | 100 % | calls/s | more is better",
        "time | 3.00 | 2.00 | 67 % | ms | less is better",
        "peer | - | - | - | calls/s | not installed; a peer",
      ],
    );
  });

  test("shows three significant digits", () => {
    assert.deepEqual([12_345.6, 123.4, 12.34, 1.234, 0.1234, 0].map(formatNumber), [
      "12,346",
      "123",
      "12.3",
      "1.23",
      "0.123",
      "0",
    ]);
  });

  test("takes the mean of the middle two values as the median, and refuses an empty list", () => {
    assert.deepEqual(summarise([1, 2, 3, 10]), { median: 2.5, lowest: 1, highest: 10, spread: 3.6 });
    assert.throws(() => summarise([]), RangeError);
    assert.throws(() => summarise([1, Number.NaN]), RangeError);
  });
});
