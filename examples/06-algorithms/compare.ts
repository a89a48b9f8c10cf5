/**
 * `npm run compare`: trains every algorithm of this example on both lakes, one after the other, and writes what they reached.
 *
 *   npm run compare -- [--algorithms grpo,ppo,curriculum+stale-1] [--worlds lake,slippery-lake] [--seeds 5]
 *
 * What was measured is kept in .hone/compare/results.json, so that a comparison that was interrupted goes on, and one with more seeds measures
 * only those that are missing. The tables are printed, and <world>.svg shows the curves.
 */

import { spawn } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { scriptArguments } from "@hone/core";
import { drawCurves } from "./draw-curves.ts";
import { type Measured, measuredOf, type NamedRuns, resultTable } from "./measured.ts";
import { algorithmNames, runFileOf, settingNames, WORLDS } from "./run-files.ts";

/** That of the first example. */
const FIRST_SEED = 7;
const HERE = import.meta.dirname;
const PROJECT = path.join(HERE, "../..");
/** Where run files are made of a world and an algorithm, and results are kept. */
const KEPT = path.join(PROJECT, ".hone/compare");
const RESULTS = path.join(KEPT, "results.json");

/** What was measured, by `<world>/<algorithm>/<seed>`. */
type Results = Record<string, Measured>;

const { values } = scriptArguments(process, {
  usage: `npm run compare -- [options]

Trains each algorithm of examples/06-algorithms/algorithms.yaml on each world, and prints what they reached.

  --algorithms NAME,NAME   only these; NAME+SETTING adds a setting of settings.yaml
  --worlds NAME,NAME       only these of ${WORLDS.join(", ")}
  --seeds COUNT            runs of each that differ in their seed (default 1)`,
  options: {
    algorithms: { type: "string" },
    worlds: { type: "string" },
    seeds: { type: "string", default: "1" },
  },
});
const names = chosen(values.algorithms, await algorithmNames(), "--algorithms", await settingNames());
const worlds = chosen(values.worlds, WORLDS, "--worlds");
const seeds = Array.from({ length: countOf(values.seeds) }, (_, index) => FIRST_SEED + index);
const results = await readResults();

// Ctrl-C ends the run under way, and with it this command, once the stack is stopped.
process.once("SIGINT", () => undefined);
await hone("up", "--detach");
try {
  for (const seed of seeds) {
    for (const world of worlds) {
      for (const name of names) {
        const key = `${world}/${name}/${seed}`;
        if (results[key] !== undefined) continue;
        console.log(`\n${name} on ${world}, seed ${seed}`);
        results[key] = await measure(world, name, seed);
        await writeFile(RESULTS, `${JSON.stringify(results)}\n`);
      }
    }
  }
} finally {
  await hone("down");
}
for (const world of worlds) {
  const measured = runsOf(world);
  await writeFile(path.join(HERE, `${world}.svg`), drawCurves(measured));
  console.log(`\n## ${world}\n\n${resultTable(measured)}`);
}

async function measure(world: string, name: string, seed: number): Promise<Measured> {
  const file = path.join(KEPT, `${world}-${name}.json`);
  await mkdir(KEPT, { recursive: true });
  await writeFile(file, JSON.stringify({ ...(await runFileOf(world, name)), seed }));
  await hone("run", file);
  const found = JSON.parse(await hone("evaluations", "--json")) as Parameters<typeof measuredOf>[0];
  return measuredOf(found);
}

/** Runs a command of Hone. @returns what it printed. @throws {Error} where it fails. */
async function hone(...args: readonly string[]): Promise<string> {
  const program = ["scripts/bootstrap.mjs", "apps/cli/src/main.ts"];
  const isQuiet = args.includes("--json");
  const child = spawn(process.execPath, [...program, ...args], {
    cwd: PROJECT,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  for await (const chunk of child.stdout) {
    output += String(chunk);
    if (!isQuiet) process.stdout.write(chunk as Buffer);
  }
  const code = child.exitCode ?? (await new Promise((resolve) => child.once("exit", resolve)));
  if (code !== 0) throw new Error(`hone ${args.join(" ")} ended with code ${code}`);
  return output;
}

/** The runs of each algorithm on a world. */
function runsOf(world: string): NamedRuns[] {
  const ofWorld = Object.entries(results).filter(([key]) => key.startsWith(`${world}/`));
  return [...Map.groupBy(ofWorld, ([key]) => key.split("/")[1]!)].map(([name, entries]) => [
    name,
    entries.map(([, measured]) => measured),
  ]);
}

async function readResults(): Promise<Results> {
  const text = await readFile(RESULTS, "utf8").catch(() => "{}");
  return JSON.parse(text) as Results;
}

function countOf(text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count > 0) return count;
  console.error(`--seeds is "${text}"; give a whole number above 0`);
  process.exit(2);
}

/** The names of a list, each with settings after plus signs; all names where no list is given. */
function chosen(
  list: string | undefined,
  known: readonly string[],
  option: string,
  settings: readonly string[] = [],
): readonly string[] {
  const asked = list?.split(",") ?? known;
  for (const each of asked) {
    const [name = "", ...added] = each.split("+");
    if (known.includes(name) && added.every((setting) => settings.includes(setting))) continue;
    const possible = settings.length === 0 ? "" : `, with +${settings.join(", +")} where wanted`;
    console.error(`${option} is "${each}"; give some of ${known.join(", ")}${possible}`);
    process.exit(2);
  }
  return asked;
}
