import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { ElementType, inspectAdapter, loadModel, saveCheckpoint } from "@hone/checkpoint";
import { type HubServer, startHubServer } from "@hone/hub/testing";
import { configFromSpec, initialiseWeights, listParameters, resolveModelSpec } from "@hone/nn";
import { temporaryFolder } from "@hone/testing";
import { type FinishedRun, publishRequest, refusalOf, runToEnd } from "../support/follow.ts";
import { lakeRun } from "../support/lake-run.ts";
import { REPOSITORY, startStack, type TestStack } from "../support/stack.ts";

/*
 * A checkpoint of the hub, in shards and bfloat16, with its own tokenizer, is fetched, played with, trained and exported:
 * once the whole model, and once its adapters.
 */

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

  /** Writes the model in shards, as large checkpoints of the hub are. */
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

  test("exports the same files and types as its start model, with other weights", async () => {
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

  describe("that trains adapters with a KL penalty", () => {
    const lora = { rank: 4, alpha: 8, targets: ["q_proj", "v_proj", "down_proj"] };
    const steps = 3;
    let calm: FinishedRun;
    let killed: FinishedRun;
    const adapted = async () => {
      const run = await requestOf({ path: "owner/name", lora });
      const { algorithm, trainer } = run;
      return {
        ...run,
        name: "adapted",
        // The entropy bonus changes the weights whatever the rewards are.
        algorithm: {
          ...algorithm,
          loss: { ...algorithm.loss, entropy: 0.1 },
          kl: { coefficient: 0.05, kind: "k3" },
        },
        trainer: { ...trainer, steps, keepRollouts: true, keepStates: 1 },
      };
    };
    const digestOf = async ({ runId }: FinishedRun) =>
      (await stack.sql`select state_digest from trainer.runs where run_id = ${runId}`)[0]?.state_digest;

    before(async () => {
      calm = await runToEnd(stack, await adapted(), { deadlineMs: RUN_DEADLINE_MS });
      let isKilled = false;
      killed = await runToEnd(stack, await adapted(), {
        deadlineMs: RUN_DEADLINE_MS,
        onEvent: async ({ kind }) => {
          if (kind.case !== "stepCompleted" || isKilled) return;
          isKilled = true;
          await stack.kill("trainer");
        },
      });
      assert.ok(isKilled);
    });

    test("samples from the merged weights, and reports the KL divergence from version 0", () => {
      assert.equal(calm.steps.length, steps);
      const distances = calm.steps.map(({ metrics }) => Number(metrics["kl/mean"]));
      for (const { metrics } of calm.steps) {
        assert.ok(Number(metrics["mismatch/max"]) < 1e-4, JSON.stringify(metrics));
      }
      // The first update of the first step is at version 0, its second epoch no longer.
      assert.ok(distances[0]! < 1e-3 && distances[0]! < distances.at(-1)!, `${distances}`);
      assert.ok(
        distances.every((distance) => Number.isFinite(distance) && distance >= -1e-6),
        `${distances}`,
      );
      assert.ok(distances.at(-1)! > 0, `${distances}`);
    });

    test("a trainer that is killed between two steps ends with the same bits", async () => {
      assert.match(await digestOf(calm), /^[0-9a-f]{64}$/);
      assert.equal(await digestOf(killed), await digestOf(calm));
      assert.deepEqual(
        killed.steps.map(({ metrics }) => metrics["kl/mean"]),
        calm.steps.map(({ metrics }) => metrics["kl/mean"]),
      );
    });

    test("a replay that begins with kept adapters and version 0 as its reference ends with the same bits", async () => {
      const { code, output } = await stack.hone("replay", calm.runId, "--from", "3");
      assert.equal(code, 0, output);
      assert.match(output, /version 3 has the same weights in both, bit for bit/);
    });

    test("its states and checkpoints hold only adapters, with the public name of their base model", async () => {
      const run = path.join(stack.stateFolder, "runs", calm.runId);
      for (const state of await readdir(path.join(run, "state"))) {
        assert.ok(
          (await readdir(path.join(run, "state", state))).includes("adapter_model.safetensors"),
          state,
        );
      }
      const checkpoint = path.join(stack.stateFolder, calm.ended.checkpoint);
      assert.deepEqual(await readdir(checkpoint), [
        "adapter_config.json",
        "adapter_model.safetensors",
        ...TOKENIZER_FILES.toSorted(),
      ]);
      const { lora: found, base } = await inspectAdapter(checkpoint);
      assert.deepEqual(found, lora);
      assert.deepEqual(base, { place: "owner/name", revision: "main" });
    });

    test("hone export writes the adapters, and with --merge a whole model like the start model", async () => {
      const out = path.join(folder.path, "out");
      const plain = path.join(out, "adapters");
      const merged = path.join(out, "merged");
      for (const args of [[plain], [merged, "--merge"]]) {
        const { code, output } = await stack.hone("export", calm.runId, ...args);
        assert.equal(code, 0, output);
      }
      assert.ok((await readdir(plain)).includes("adapter_model.safetensors"));
      const source = await loadModel(path.join(folder.path, "source"));
      const result = await loadModel(merged);
      assert.deepEqual(result.origin, source.origin);
      assert.deepEqual(result.companions, source.companions);
      const changed = Object.keys(source.weights).filter(
        (name) =>
          !Buffer.from(source.weights[name]!.buffer).equals(Buffer.from(result.weights[name]!.buffer)),
      );
      assert.deepEqual(changed.length, lora.targets.length * spec.numLayers);
      const refused = await stack.hone("export", finished.runId, path.join(out, "whole"), "--merge");
      assert.match(refused.output, /trains its whole model, so there are no adapters to merge/);
    });
  });

  const refusals: [what: string, model: Record<string, unknown>, message: RegExp][] = [
    ["a model that the hub does not have", { path: "owner/other" }, /the hub does not have it \(status 404/],
    [
      "a folder outside of those for models",
      { path: "/etc" },
      /outside of the folders that models may be read from.*HONE_MODEL_FOLDERS/,
    ],
    [
      "one outside of the project folder",
      { path: "../../../../../../etc" },
      /outside of the folders that models may be read from.*HONE_MODEL_FOLDERS/,
    ],
    ["a path that leads nowhere", { path: "./nowhere" }, /a folder, absolute or below the project folder/],
  ];
  for (const [what, model, message] of refusals) {
    test(`refuses ${what} by its key`, async () => {
      const sequence = await publishRequest(stack.bus, JSON.stringify(await requestOf(model)));
      const { problems } = await refusalOf(stack.bus, sequence, ANSWER_MS);
      assert.equal(problems[0]?.key, "model.path");
      assert.match(problems[0].message, message);
    });
  }
});
