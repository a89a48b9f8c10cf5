import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { type HubServer, startHubServer } from "@hone/hub/testing";
import { configFromSpec, initialiseWeights, listParameters, resolveModelSpec } from "@hone/nn";
import { temporaryFolder } from "@hone/testing";
import { ElementType, loadModel, saveCheckpoint } from "@hone/train";
import { type FinishedRun, publishRequest, refusalOf, runToEnd } from "../support/follow.ts";
import { lakeRun } from "../support/lake-run.ts";
import { REPOSITORY, startStack, type TestStack } from "../support/stack.ts";

/* A checkpoint of the hub, in shards and bfloat16, with its own tokenizer: fetched, played with, trained, exported. */

const RUN = {
  name: "pretrained",
  steps: 2,
  tasksPerStep: 2,
  minibatches: 1,
  warmStartTasks: 10,
  evalTasks: 2,
};
const TOKENIZER_FILES = ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"];
const RUN_DEADLINE_MS = 120_000;
const ANSWER_MS = 30_000;

describe("a run of a pretrained model", () => {
  const spec = resolveModelSpec({
    family: "llama",
    vocabSize: 32,
    hiddenSize: 32,
    numLayers: 2,
    numHeads: 4,
    numKeyValueHeads: 2,
    isTied: false,
    maxPositions: 256,
    eosTokenIds: [2],
    ropeScaling: { kind: "linear", factor: 2 },
  });
  let hub: HubServer;
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let stack: TestStack;
  let finished: FinishedRun;
  const requestOf = async (model: Record<string, unknown>) => ({ ...(await lakeRun(RUN)), model });

  before(async () => {
    hub = await startHubServer();
    folder = await temporaryFolder("pretrained");
    const source = path.join(folder.path, "source");
    await saveCheckpoint(source, await madeModel());
    for (const name of await readdir(source)) hub.files.set(name, await readFile(path.join(source, name)));
    stack = await startStack({
      env: { HF_ENDPOINT: hub.endpoint, HF_HOME: path.join(folder.path, "hf"), HF_TOKEN: "" },
    });
    finished = await runToEnd(stack, await requestOf({ path: "owner/name" }), {
      deadlineMs: RUN_DEADLINE_MS,
    });
  });
  after(async () => {
    await stack?.[Symbol.asyncDispose]();
    await folder?.[Symbol.asyncDispose]();
    await hub?.[Symbol.asyncDispose]();
  });

  /** With shards as the large checkpoints of the hub have them. */
  async function madeModel() {
    const example = path.join(REPOSITORY, "examples", "01-frozen-lake");
    const companions = Object.fromEntries(
      await Promise.all(
        TOKENIZER_FILES.map(
          async (name) => [name, await readFile(path.join(example, name), "utf8")] as const,
        ),
      ),
    );
    const tensors = listParameters(spec).map(({ name }) => ({ name, type: ElementType.BF16 }));
    const shards = [tensors.slice(0, 9), tensors.slice(9)].map((part, i) => ({
      file: `model-0000${i + 1}-of-00002.safetensors`,
      tensors: part,
    }));
    const origin = { config: configFromSpec(spec), layout: { shards } };
    return { spec, weights: initialiseWeights(spec, 3), companions, origin };
  }

  test("samples from its own weights and trains what it sampled", () => {
    assert.equal(finished.steps.length, RUN.steps);
    for (const { metrics } of finished.steps) {
      assert.ok(Number(metrics["mismatch/max"]) < 1e-4, JSON.stringify(metrics));
    }
  });

  test("exports the same files in the same types, with other weights", async () => {
    const source = await loadModel(path.join(folder.path, "source"));
    const exported = path.join(stack.stateFolder, finished.ended.checkpoint);
    const result = await loadModel(exported);
    assert.deepEqual(result.origin, source.origin);
    assert.deepEqual(result.companions, source.companions);
    assert.deepEqual(await readdir(exported), await readdir(path.join(folder.path, "source")));
    const changed = Object.keys(source.weights).filter(
      (name) => !Buffer.from(source.weights[name]!.buffer).equals(Buffer.from(result.weights[name]!.buffer)),
    );
    assert.ok(changed.length > 0);
  });

  const refusals: [what: string, model: Record<string, unknown>, message: RegExp][] = [
    ["a model that the hub does not have", { path: "owner/other" }, /the hub has it at this revision/],
    ["a path that leads nowhere", { path: "./nowhere" }, /a folder, absolute or below the project folder/],
  ];
  for (const [what, model, message] of refusals) {
    test(`is refused by its key: ${what}`, async () => {
      const sequence = await publishRequest(stack.bus, JSON.stringify(await requestOf(model)));
      const { problems } = await refusalOf(stack.bus, sequence, ANSWER_MS);
      assert.equal(problems[0]?.key, "model.path");
      assert.match(problems[0].message, message);
    });
  }
});
