import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { parseYaml } from "@hone/config";
import { chatmlTokenizerFiles } from "@hone/tokenizer/testing";
import { findProject, REPOSITORY } from "../project.ts";

/* Runs the commands of docs/debugging.md and the run file of docs/environments.md as they are printed there. */

const run = promisify(execFile);
const MAIN = path.join(REPOSITORY, "apps", "cli", "src", "main.ts");
const read = (page: string) => readFile(path.join(REPOSITORY, "docs", page), "utf8");

describe("the examples of the documentation", () => {
  let folder: string;
  before(async () => {
    await mkdir(path.join(REPOSITORY, ".hone"), { recursive: true });
    folder = await mkdtemp(path.join(REPOSITORY, ".hone", "docs-"));
  });
  after(() => rm(folder, { recursive: true }));

  const hone = async (args: readonly string[], env: Readonly<Record<string, string>> = {}) => {
    const { stdout } = await run(process.execPath, [MAIN, ...args], {
      env: { ...process.env, HONE_STATE_DIR: folder, INIT_CWD: REPOSITORY, NO_COLOR: "1", ...env },
    });
    return stdout;
  };

  test("debugging.md: each command plays or checks the first example", async () => {
    const blocks = [...(await read("debugging.md")).matchAll(/```sh\n(.*?)```/gs)].map(
      ([, text = ""]) => text,
    );
    const commands = blocks
      .flatMap((block) => block.trim().split("\n"))
      .map((line) => line.replace(/^npm run hone -- /, "").split(" "));
    assert.equal(commands.length, 4);
    const outputs = await Promise.all(commands.map((args) => hone(args)));
    const [legal = "", random = "", model = "", checked = ""] = outputs;
    assert.match(legal, /answered by the script random_legal\n {2}task +frozen_lake:0 .*outcome +completed/s);
    assert.match(random, /task +frozen_lake:5000002 /);
    assert.match(model, /tokens +\d+ to \d+, mask 1\n +\d+ "[^\n]*" -\d+\.\d{3}/);
    assert.match(checked, /run\.yaml is valid/);
  });

  test("environments.md: the run file is valid, and its environment is played", async () => {
    for (const [, name = "", text = ""] of (await read("environments.md")).matchAll(
      /```\w+\n(?:\/\/|#) file: (\S+)\n(.*?)```/gs,
    )) {
      await writeFile(path.join(folder, name), text);
    }
    const env = { HONE_FILES: folder, HF_HUB_CACHE: path.join(folder, "cache") };
    const file = path.join(folder, "numbers.yaml");
    assert.match(await hone(["validate", file], env), /numbers\.yaml is valid\n/);
    // The page's model is on the hub; a script plays as well with this one.
    for (const [name, text] of Object.entries(chatmlTokenizerFiles())) {
      if (name !== "generation_config.json") await writeFile(path.join(folder, name), text);
    }
    const init = { architecture: "qwen3", hiddenSize: 16, numLayers: 1, numHeads: 2, maxPositions: 512 };
    const model = { init: { ...init, tokenizer: "tokenizer.json" } };
    const small = path.join(folder, "small.json");
    await writeFile(
      small,
      JSON.stringify({ ...(parseYaml(await readFile(file, "utf8"), file) as object), model }),
    );
    const played = JSON.parse(await hone(["debug", small, "--policy", "random_legal", "--json"], env));
    assert.equal(played.task.environment.name, "numbers");
    assert.match(played.turns[0].messages[1].content, /^Guess a number from 1 to 3\. /);
    assert.equal(played.verdict.reward, played.environmentReturn);
    assert.equal(findProject(env).folder, folder);
  });
});
