import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { ConfigError } from "../../errors.ts";
import { inlineFiles } from "./inline-files.ts";
import { parseRunFile } from "./parse-run-file.ts";

const RUN = `
name: test
model: { init: { architecture: qwen3, hiddenSize: 64, numLayers: 1, numHeads: 4, tokenizer: tokenizer.json } }
dataset: { train: { source: environment, environment: frozen_lake, seeds: { from: 0, to: 10 } } }
agent: { name: frozen_lake, configPath: agent.yaml }
rollout: { tasksPerStep: 1, groupSize: 2 }
trainer: { steps: 1, optimizer: { kind: adamw, learningRate: 0.001 } }
`;

describe("inlineFiles()", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "hone-config-"));
    await writeFile(path.join(folder, "agent.yaml"), "historyTurns: 0\n");
    await writeFile(path.join(folder, "tokenizer.json"), '{"version":"1.0"}');
  });
  after(() => rm(folder, { recursive: true }));

  test("replaces the paths of the agent's YAML and of the tokenizer by the contents of their files", async () => {
    const run = await inlineFiles(parseRunFile(RUN), folder);
    assert.deepEqual(run.agent, { name: "frozen_lake", config: { historyTurns: 0 } });
    assert.ok("init" in run.model);
    assert.deepEqual(run.model.init.tokenizer, { files: { "tokenizer.json": '{"version":"1.0"}' } });
    assert.deepEqual(parseRunFile(JSON.stringify(run)), run);
  });

  test("makes the path of a model's folder absolute, and keeps an id of the hub as it is", async () => {
    await mkdir(path.join(folder, "models", "small"), { recursive: true });
    for (const [given, wanted] of [
      ["models/small", path.join(folder, "models", "small")],
      ["owner/name", "owner/name"],
    ] as const) {
      const { model } = await inlineFiles(
        parseRunFile(RUN.replace(/^model:.*$/m, `model: { path: ${given} }`)),
        folder,
      );
      assert.equal("path" in model && model.path, wanted);
    }
  });

  for (const [what, from, to, key] of [
    ["a missing file", "agent.yaml", "absent.yaml", "agent.configPath"],
    ["a path that leaves the folder", "agent.yaml", "../agent.yaml", "agent.configPath"],
    ["a missing tokenizer", "tokenizer: tokenizer.json", "tokenizer: other", "model.init.tokenizer"],
  ] as const) {
    test(`refuses ${what} and names its key`, async () => {
      await assert.rejects(inlineFiles(parseRunFile(RUN.replace(from, to)), folder), (error) => {
        assert.ok(error instanceof ConfigError);
        assert.equal(error.problems[0]?.key, key);
        return true;
      });
    });
  }
});
