import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { type TemporaryFolder, temporaryFolder, torchPython } from "@hone/testing";
import { REPOSITORY } from "../support/stack.ts";

/* docs/extending.md tells the truth: what it says to add is added to a copy of the tree, which then compiles and computes it. */

const PAGE = path.join(REPOSITORY, "docs", "extending.md");
const WORKERS = path.join("services", "trainer", "torch");
const DEADLINE_MS = 300_000;
const { python, skip: isWithoutTorch } = torchPython(process.env);

/** In the copy: the advantages of a group, and the loss of three tokens by the embedded engine. */
const PROGRAM = `
import { algorithmSchema, computeAdvantages, policyObjective } from "@hone/rl";
import { initialiseWeights, resolveModelSpec } from "@hone/nn";
import { GradientRunner } from "@hone/train";

const { advantage, loss, kl } = algorithmSchema.parse({ advantage: { kind: "rloo" }, loss: { kind: "reinforce" } });
const rollouts = [1, 0, 0].map((reward) => ({ rollout: {}, reward, turnRewards: undefined }));
const { groups } = computeAdvantages([{ task: 0, rollouts }] as never, advantage);
const spec = resolveModelSpec({ vocabSize: 16, hiddenSize: 16, numLayers: 1, numHeads: 2 });
const runner = new GradientRunner(spec, { maxRowTokens: 16, maxMicrobatchTokens: 16 });
const sample = { tokenIds: [1, 2, 3, 4], lossMask: [0, 1, 1, 1], inputs: { advantage: [1, -0.5, 2] }, weights: [1, 1, 1] };
const objective = { terms: policyObjective(loss, kl).terms, entropyCoefficient: 0 };
const found = await runner.differentiate(initialiseWeights(spec, 1), [sample], objective);
await runner.close();
console.log(JSON.stringify({
  advantages: groups[0]?.map((each) => each.advantage),
  loss: found.loss,
  logprobs: [...found.logprobs],
}));
`;

describe("docs/extending.md", () => {
  let copy: TemporaryFolder;
  before(async () => {
    copy = await temporaryFolder("extending");
    await copyTree(copy.path);
    await applyBlocks(copy.path);
  });
  after(() => copy?.[Symbol.asyncDispose]());

  test("adds a loss and an advantage that compile, and that the embedded engine computes", async () => {
    await writeFile(path.join(copy.path, "program.ts"), PROGRAM);
    const tsc = path.join(REPOSITORY, "node_modules", "typescript", "bin", "tsc");
    await run(process.execPath, [tsc, "--noEmit", "-p", "tsconfig.json"], copy.path);
    const output = await run(process.execPath, ["program.ts"], copy.path);
    const { advantages, loss, logprobs } = JSON.parse(output) as {
      advantages: number[];
      loss: number;
      logprobs: [number, number, number];
    };
    assert.deepEqual(advantages, [1, -0.5, -0.5]);
    const [first, second, third] = logprobs;
    const expected = -(first - 0.5 * second + 2 * third);
    assert.ok(Math.abs(loss - expected) < 1e-5, `${loss} is not ${expected}`);
  });

  test("adds a loss that PyTorch's workers compute", { skip: isWithoutTorch }, async () => {
    const program =
      "import torch; from hone_fsdp.losses import LOSSES; " +
      "print(LOSSES['reinforce'](torch.tensor([-1.0, -2.0]), {'advantage': torch.tensor([1.0, -0.5])}, {}).tolist())";
    const output = await run(python, ["-c", program], path.join(copy.path, WORKERS));
    assert.deepEqual(JSON.parse(output), [1, -1]);
  });
});

/** Packages and services without their tests, with the installed dependencies. */
async function copyTree(target: string): Promise<void> {
  const isWanted = (source: string) =>
    !/(^|\/)(node_modules|fixtures|bench|testing)$|\.(test|suite)\.ts$/.test(source);
  for (const part of ["libs", "services", "tsconfig.base.json"]) {
    await cp(path.join(REPOSITORY, part), path.join(target, part), { recursive: true, filter: isWanted });
  }
  const compiled = ["libs/config/src", "libs/rl/src", "libs/train/src", "services/trainer/src", "program.ts"];
  const tsconfig = { extends: "./tsconfig.base.json", include: compiled };
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

/** Writes the page's files, and makes its changes in the lists. */
async function applyBlocks(target: string): Promise<void> {
  const page = await readFile(PAGE, "utf8");
  const blocks = [...page.matchAll(/^```(ts|python|diff)\n(?:\/\/|#) (\S+)\n([\s\S]*?)^```$/gm)];
  assert.ok(blocks.length >= 7, `the page has ${blocks.length} blocks that name their file`);
  for (const [, kind, name, text] of blocks) {
    const file = path.join(target, name!);
    if (kind === "diff") await writeFile(file, changed(await readFile(file, "utf8"), text!, name!));
    else await writeFile(file, text!);
  }
}

/** Lines with + after a line with - take its place; those before the first one are imports. */
function changed(before: string, diff: string, name: string): string {
  const lines = diff.trimEnd().split("\n");
  const removed = lines.findIndex((line) => line.startsWith("-"));
  const old = lines[removed]?.slice(1);
  assert.ok(old !== undefined && before.includes(`${old}\n`), `${name} has the line ${old}`);
  const added = (part: readonly string[]) => part.map((line) => line.slice(1)).join("\n");
  const after = before.replace(`${old}\n`, `${added(lines.slice(removed + 1))}\n`);
  const imports = added(lines.slice(0, removed));
  const at = after.search(/^(import|from) .*(\n.*)*?/m);
  return `${after.slice(0, at)}${imports}\n${after.slice(at)}`;
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
