import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { type TemporaryFolder, temporaryFolder, torchPython } from "@hone/testing";
import { REPOSITORY } from "../support/stack.ts";

/* Adds what docs/extending.md describes to a copy of the repository, compiles the copy and runs it. */

const PAGE = path.join(REPOSITORY, "docs", "extending.md");
const WORKERS = path.join("services", "trainer", "torch");
const DEADLINE_MS = 300_000;
const { python, skip: isWithoutTorch } = torchPython(process.env);

/** Program that is run in the copy: computes the advantages of a group, and the loss of three tokens with the embedded engine. */
const PROGRAM = `
import { algorithmSchema, computeAdvantages, policyObjective } from "@hone/rl";
import { initialiseWeights, resolveModelSpec } from "@hone/nn";
import { GradientRunner } from "@hone/train";

const { advantage, loss, kl } = algorithmSchema.parse({ advantage: { kind: "batch_mean" }, loss: { kind: "awr" } });
const rollouts = [1, 0, 0].map((reward) => ({ rollout: {}, reward, turnRewards: undefined }));
const others = [{ rollout: {}, reward: 0, turnRewards: undefined }];
const { groups } = computeAdvantages([{ task: 0, rollouts }, { task: 1, rollouts: others }] as never, advantage);
const spec = resolveModelSpec({ vocabSize: 16, hiddenSize: 16, numLayers: 1, numHeads: 2 });
const runner = new GradientRunner(spec, { maxRowTokens: 16, maxMicrobatchTokens: 16 });
const sample = { tokenIds: [1, 2, 3, 4], lossMask: [0, 1, 1, 1], inputs: { advantage: [1, -0.5, 2] }, weights: [1, 1, 1] };
const objective = { terms: policyObjective(loss, kl).terms, entropyCoefficient: 0 };
const found = await runner.differentiate(initialiseWeights(spec, 1), [sample], objective);
await runner.close();
console.log(JSON.stringify({
  advantages: groups[0]?.map((each) => each.advantage),
  loss: found.loss,
  logprobs: [...found.scores],
}));
`;

/** Program that is run in the copy: judges two answers, plays an episode of the environment, and writes two steps to the sink. */
const ADDITIONS = `
import { readFile } from "node:fs/promises";
import { environmentOf } from "@hone/agents";
import { parseJudges } from "@hone/config";
import "./services/agent-rollout/src/domain/built-ins.ts";
import { makeJudge } from "./services/judge/src/domain/registry.ts";
import { readTracerConfig } from "./services/tracer/src/config.ts";
import { openSinks } from "./services/tracer/src/sinks/open-sinks.ts";

const parsed = parseJudges([{ kind: "contains" }]);
const [config] = parsed.kind === "judges" ? parsed.judges : [];
const judge = await makeJudge(config as never, {} as never);
const judged = ["It is 72.", "It is 27."].map((solution) =>
  judge({ metadata: { solution }, turns: [], row: { groundTruth: "72" } } as never, {} as never));

const definition = environmentOf("repeat")!;
const environment = definition.create(definition.configSchema.parse({ highest: 5 }));
const { observation } = await environment.reset(3);
const right = await environment.step(observation.replace("Repeat: ", ""));

const { sinks } = readTracerConfig({
  HONE_NATS_URL: "nats://127.0.0.1:1",
  HONE_DATABASE_URL: "postgres://127.0.0.1:1/none",
  HONE_STATE_DIR: ".",
  HONE_TRACER_METRICS_FILE: "steps.jsonl",
} as never);
const { jsonLines } = openSinks({ config: { sinks }, database: {} } as never);
const fact = { runId: "lake-1", sequence: 1, timeMs: 1, kind: "step_completed", totalSteps: 2, version: 1 } as const;
await jsonLines!.write([1, 2].map((step) => ({ ...fact, step, metrics: { reward: step / 2 } })));
console.log(JSON.stringify({
  judged,
  rewards: [right.reward, environment.metrics()],
  steps: (await readFile("steps.jsonl", "utf8")).trimEnd().split("\\n").map((line) => JSON.parse(line)),
}));
`;

describe("docs/extending.md", () => {
  let copy: TemporaryFolder;
  before(async () => {
    copy = await temporaryFolder("extending");
    await copyTree(copy.path);
    await applyBlocks(copy.path);
    await writeFile(path.join(copy.path, "program.ts"), PROGRAM);
    await writeFile(path.join(copy.path, "additions.ts"), ADDITIONS);
  });
  after(() => copy?.[Symbol.asyncDispose]());

  test("its additions compile", async () => {
    const tsc = path.join(REPOSITORY, "node_modules", "typescript", "bin", "tsc");
    await run(process.execPath, [tsc, "--noEmit", "-p", "tsconfig.json"], copy.path);
  });

  test("it lists every file that names a sampling parameter", async () => {
    const page = await readFile(PAGE, "utf8");
    const [section = ""] = /^## A sampling parameter$[\s\S]*?(?=^## )/m.exec(page) ?? [];
    const listed = new Set(
      [...section.matchAll(/`([\w./-]+\.(?:ts|proto|md))`/g)].map(([, name]) => path.basename(name!)),
    );
    const found = await filesNaming(/\b(minP|min_p)\b/);
    assert.ok(found.includes("libs/rl/src/sampling/parameters.ts"), `found only ${found.join(", ")}`);
    assert.deepEqual(
      found.filter((file) => !listed.has(path.basename(file))),
      [],
    );
  });

  test("its judge, environment and sink work", async () => {
    const output = await run(process.execPath, ["additions.ts"], copy.path);
    assert.deepEqual(JSON.parse(output), {
      judged: [1, 0],
      rewards: [1, { success: 1 }],
      steps: [
        { run: "lake-1", step: 1, reward: 0.5 },
        { run: "lake-1", step: 2, reward: 1 },
      ],
    });
  });

  test("the embedded engine computes its loss and its advantage", async () => {
    const output = await run(process.execPath, ["program.ts"], copy.path);
    const { advantages, loss, logprobs } = JSON.parse(output) as {
      advantages: number[];
      loss: number;
      logprobs: [number, number, number];
    };
    assert.deepEqual(advantages, [0.75, -0.25, -0.25]);
    const [first, second, third] = logprobs;
    const expected = -(Math.E * first + Math.exp(-0.5) * second + Math.exp(2) * third);
    assert.ok(Math.abs(loss - expected) < 1e-5 * expected, `${loss} is not ${expected}`);
  });

  test("its loss is computed by PyTorch workers", { skip: isWithoutTorch }, async () => {
    const program =
      "import torch; from hone_fsdp.losses import LOSSES; " +
      "print(LOSSES['awr'](torch.tensor([-1.0, -2.0]), {'advantage': torch.tensor([0.0, 0.0])}, {}).tolist())";
    const output = await run(python, ["-c", program], path.join(copy.path, WORKERS));
    assert.deepEqual(JSON.parse(output), [1, 2]);
  });
});

/** @returns the written files of packages, protocol and docs that hold a word; not tests, and not the page itself. */
async function filesNaming(word: RegExp): Promise<string[]> {
  const isOther = (file: string) =>
    /(^|\/)(node_modules|testing|gen)\/|\.test\.ts$/.test(file) || file === "docs/extending.md";
  const found: string[] = [];
  for (const place of ["libs", "services", "apps", "proto", "docs"]) {
    const names = await readdir(path.join(REPOSITORY, place), { recursive: true });
    for (const name of names.filter((each) => /\.(ts|proto|md)$/.test(each))) {
      const file = path.posix.join(place, name);
      if (isOther(file)) continue;
      if (word.test(await readFile(path.join(REPOSITORY, file), "utf8"))) found.push(file);
    }
  }
  return found.sort();
}

/** Copies packages and services without their tests, and links the installed dependencies. */
async function copyTree(target: string): Promise<void> {
  const isWanted = (source: string) =>
    !/(^|\/)(node_modules|fixtures|bench|testing)$|(\.(test|suite)|\/testing)\.ts$/.test(source);
  for (const part of ["libs", "services", "tsconfig.base.json"]) {
    await cp(path.join(REPOSITORY, part), path.join(target, part), { recursive: true, filter: isWanted });
  }
  const compiled = ["libs/*/src", "services/*/src", "program.ts", "additions.ts"];
  // The web page has types of its own, as it runs in a browser.
  const exclude = ["services/tracer/src/http/page"];
  const tsconfig = { extends: "./tsconfig.base.json", include: compiled, exclude };
  await writeFile(path.join(target, "tsconfig.json"), JSON.stringify(tsconfig));
  await writeFile(path.join(target, "package.json"), JSON.stringify({ type: "module" }));
  const installed = path.join(REPOSITORY, "node_modules");
  const modules = path.join(target, "node_modules");
  await mkdir(path.join(modules, "@hone"), { recursive: true });
  for (const name of await readdir(installed)) {
    if (name !== "@hone") await symlink(path.join(installed, name), path.join(modules, name));
  }
  for (const name of await readdir(path.join(target, "libs"))) {
    await symlink(path.join(target, "libs", name), path.join(modules, "@hone", name));
  }
}

/** Writes the page's files and applies its diffs. */
async function applyBlocks(target: string): Promise<void> {
  const page = await readFile(PAGE, "utf8");
  const blocks = [...page.matchAll(/^```(ts|python|diff)\n(?:\/\/|#) (\S+)\n([\s\S]*?)^```$/gm)];
  assert.ok(blocks.length >= 17, `the page has ${blocks.length} blocks that name their file`);
  for (const [, kind, name, text] of blocks) {
    const file = path.join(target, name!);
    await mkdir(path.dirname(file), { recursive: true });
    if (kind === "diff") await writeFile(file, changed(await readFile(file, "utf8"), text!, name!));
    else await writeFile(file, text!);
  }
}

/** Applies a hunk: lines with + after a line with - replace it, and lines before it are added as imports. */
function changed(before: string, diff: string, name: string): string {
  return diff.split(/^@@\n/m).reduce((text, hunk) => {
    const lines = hunk.trimEnd().split("\n");
    const removed = lines.findIndex((line) => line.startsWith("-"));
    const old = lines[removed]?.slice(1);
    assert.ok(old !== undefined && text.includes(`${old}\n`), `${name} has no line ${old}`);
    const added = (part: readonly string[]) => part.map((line) => `${line.slice(1)}\n`).join("");
    const after = text.replace(`${old}\n`, added(lines.slice(removed + 1)));
    const at = after.search(/^(import|from) /m);
    return `${after.slice(0, at)}${added(lines.slice(0, removed))}${after.slice(at)}`;
  }, before);
}

async function run(program: string, args: readonly string[], cwd: string): Promise<string> {
  const env = { ...process.env, PYTHONPATH: cwd };
  const options = { cwd, env, timeout: DEADLINE_MS, maxBuffer: 1 << 24 };
  const { stdout } = await promisify(execFile)(program, [...args], options).catch((error) => {
    throw new Error(`${program} ${args.join(" ")} failed:\n${error.stdout}\n${error.stderr}`, {
      cause: error,
    });
  });
  return stdout;
}
