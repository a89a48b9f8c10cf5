import assert from "node:assert/strict";
import { cp, mkdir, rename } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { saveCheckpoint } from "@hone/checkpoint";
import { initialiseWeights, resolveModelSpec } from "@hone/nn";
import { eventually, type TemporaryFolder, temporaryFolder } from "@hone/testing";
import { chatmlTokenizer, chatmlTokenizerFiles } from "@hone/tokenizer/testing";
import { CommandLine } from "../support/processes/command-line.ts";

/* `hone chat` without a stack: it starts a gateway for the folder of a checkpoint. */

describe("hone chat", { timeout: 120_000 }, () => {
  let folder: TemporaryFolder;

  before(async () => {
    folder = await temporaryFolder("chat");
    const { vocabSize, stopTokenIds } = chatmlTokenizer();
    const spec = resolveModelSpec({
      vocabSize,
      hiddenSize: 32,
      numLayers: 1,
      numHeads: 2,
      maxPositions: 256,
      eosTokenIds: stopTokenIds,
      initializerRange: 0.3,
    });
    const companions = chatmlTokenizerFiles();
    await saveCheckpoint(path.join(folder.path, "model"), {
      spec,
      weights: initialiseWeights(spec, 3),
      companions,
    });
  });
  after(() => folder[Symbol.asyncDispose]());

  const start = (args: readonly string[], env: Record<string, string> = {}) =>
    new CommandLine(["chat", ...args], {
      stateFolder: path.join(folder.path, "state"),
      userFolder: folder.path,
      env,
    });

  async function chat(input: string, ...args: string[]) {
    const command = start(args);
    command.write(input);
    const code = await command.ended;
    return { code, output: command.output, errors: command.errors };
  }

  test("answers each line, and gives the same greedy answers again", async () => {
    const ask = () => chat("Hello\nAnd now?\n", "./model", "--temperature", "0", "--max-tokens", "12");
    const first = await ask();
    assert.deepEqual([first.code, first.errors], [0, ""]);
    const [head, ...answers] = first.output.trimEnd().split("\n");
    assert.match(head!, /model: type a message/);
    assert.ok(answers.join("").length > 0);
    assert.equal((await ask()).output, first.output);
  });

  test("loads a finished run by its id, and lists its versions if one does not exist", async () => {
    const checkpoints = path.join(folder.path, "state", "runs", "lake-1", "checkpoints");
    await mkdir(checkpoints, { recursive: true });
    await cp(path.join(folder.path, "model"), path.join(checkpoints, "step-7"), { recursive: true });
    const wanted = ["--temperature", "0", "--max-tokens", "12"];
    const [ofRun, ofFolder] = [
      await chat("Hello\n", "lake-1", ...wanted),
      await chat("Hello\n", "./model", ...wanted),
    ];
    assert.equal(ofRun.output, ofFolder.output.replace("./model:", "lake-1@7:"));
    const { code, errors } = await chat("Hello\n", "lake-1@3");
    assert.equal(code, 1);
    assert.match(errors, /run lake-1 has no version 3; it has 7/);
  });

  test("prints why it waits if there is no terminal, and ends on SIGINT", async () => {
    const command = start(["some/model"], { HF_ENDPOINT: "http://127.0.0.1:9", HF_HUB_OFFLINE: "0" });
    try {
      const reason = /^model is not loaded yet: .*some\/model.*hub/m;
      await eventually("the reason", () => reason.test(command.output), { deadlineMs: 60_000 });
      command.kill("SIGINT");
      assert.equal(await command.ended, 130);
    } finally {
      command.kill("SIGKILL");
    }
  });

  test("reports what is wrong with a folder that holds no model", async () => {
    await rename(path.join(folder.path, "model", "config.json"), path.join(folder.path, "config.json"));
    const { code, errors } = await chat("Hello\n", "./model");
    assert.equal(code, 1);
    assert.match(errors, /model cannot be loaded.*config\.json/s);
  });
});
