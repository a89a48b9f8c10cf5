import assert from "node:assert/strict";
import { cp, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { saveCheckpoint, saveValueModel } from "@hone/checkpoint";
import { initialiseWeights, resolveModelSpec } from "@hone/nn";
import { type TemporaryFolder, temporaryFolder } from "@hone/testing";
import { testConfig } from "../../testing/fake-run.ts";
import { RunFolders } from "../state/run-folders.ts";
import type { ModelSource } from "./model-source.ts";
import { loadOtherModel } from "./other-models.ts";
import { prepareModel } from "./prepare-model.ts";

const EXAMPLE = fileURLToPath(new URL("../../../../../examples/01-frozen-lake/", import.meta.url));
const TOKENIZER_FILES = ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"];
const SHAPE = { family: "llama", vocabSize: 32, numLayers: 1, numHeads: 2, maxPositions: 128 } as const;
const policy = resolveModelSpec({ ...SHAPE, hiddenSize: 8 });
const teacher = resolveModelSpec({ ...SHAPE, hiddenSize: 16 });

const asIs: ModelSource = { folderOf: async ({ path: folder }) => folder };
const options = { signal: new AbortController().signal, onProgress: () => undefined };

describe("models beside a run's policy", () => {
  let temporary: TemporaryFolder;
  let folders: RunFolders;
  const at = (name: string) => path.join(temporary.path, name);
  beforeEach(async () => {
    temporary = await temporaryFolder("other-models");
    folders = new RunFolders(at("state"), "test-1");
    for (const [name, spec] of Object.entries({ policy, teacher })) {
      await saveCheckpoint(at(name), { spec, weights: initialiseWeights(spec, 1), companions: {} });
      for (const file of TOKENIZER_FILES) await cp(path.join(EXAMPLE, file), path.join(at(name), file));
    }
  });
  afterEach(() => temporary[Symbol.asyncDispose]());

  const prepare = (place = "teacher", maxContextTokens = 64) =>
    prepareModel(
      testConfig({
        model: { path: at("policy") },
        rollout: { tasksPerStep: 2, groupSize: 2, maxContextTokens, sampling: { maxNewTokens: 4 } },
        algorithm: {
          advantage: { kind: "gae" },
          distillation: { teachers: [{}, { model: { path: at(place) } }] },
        },
        trainer: {
          steps: 1,
          optimizer: { kind: "adamw", learningRate: 0.1 },
          critic: { model: { path: at(place) } },
        },
      }),
      folders,
      asIs,
      options,
    );

  test("are found when the run is admitted, with shapes of their own, and again by later owners", async () => {
    const prepared = await prepare();
    assert.ok(prepared.kind === "ready", JSON.stringify(prepared));
    assert.deepEqual([...prepared.others.keys()], ["teacher-1", "critic"]);
    for (const name of prepared.others.keys()) {
      const { spec, folder } = await loadOtherModel(folders, name);
      assert.deepEqual(spec, teacher);
      assert.equal(folder, at("teacher"));
    }
  });

  const refusals: [what: string, change: () => Promise<unknown>, message: RegExp][] = [
    [
      "another vocabulary",
      async () => {
        const file = path.join(at("teacher"), "tokenizer.json");
        const text = await readFile(file, "utf8");
        await writeFile(file, text.replaceAll('"Up"', '"North"'));
      },
      /the policy's tokenizer, and its token \d+ is "North" where the policy's is "Up"/,
    ],
    [
      "a critic",
      () => saveValueModel(at("teacher"), at("teacher")),
      /a language model, and this one classifies tokens/,
    ],
    [
      "no model",
      () => writeFile(path.join(at("teacher"), "config.json"), "{}"),
      /a language model that Hone can load/,
    ],
  ];
  for (const [what, change, message] of refusals) {
    test(`with ${what} are refused by their keys`, async () => {
      await change();
      const prepared = await prepare();
      assert.ok(prepared.kind === "refused");
      assert.deepEqual(
        prepared.problems.map(({ key }) => key),
        ["algorithm.distillation.teachers[1].model.path", "trainer.critic.model.path"],
      );
      for (const problem of prepared.problems) assert.match(problem.message, message);
    });
  }

  test("with fewer positions than a rollout may have are refused", async () => {
    const prepared = await prepare("teacher", 256);
    assert.ok(prepared.kind === "refused");
    assert.match(prepared.problems[0]!.message, /at least rollout.maxContextTokens \(256\) positions/);
  });
});
