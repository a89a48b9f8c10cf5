import assert from "node:assert/strict";
import { cp, readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { inspectModel } from "@hone/checkpoint";
import { inlineFiles, parseRunFile, resolveRunConfig } from "@hone/config";
import { temporaryFolder } from "@hone/testing";
import { type FinishedRun, runToEnd } from "../support/follow.ts";
import { startStack, type TestStack } from "../support/stack.ts";

/* Two policies learn a game against each other, and one of them also plays against its earlier versions. */

const REPOSITORY = path.resolve(import.meta.dirname, "../..");
const EXAMPLE = path.join(REPOSITORY, "examples/05-multi-agent/self-play");
const STEPS = 4;
const DEADLINE_MS = 180_000;
const WEIGHTS = "model.safetensors";
const RIVAL_WEIGHTS = "policies/rival/model.safetensors";

interface Options {
  /** A process that is killed after each step. */
  readonly killed?: readonly string[];
  /** Keys that differ; undefined = left out. */
  readonly changes?: Readonly<Record<string, unknown>>;
}

type Played = FinishedRun & {
  /** SHA-256 of the files of weights in the last state, by name. */
  readonly weights: Readonly<Record<string, string>>;
};

describe("a run with several policies", () => {
  let stack: TestStack;
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let calm: Played;
  /** A model that knows the game's legal moves. */
  let model: string;

  before(async () => {
    folder = await temporaryFolder("policies");
    stack = await startStack({ env: { HONE_FILES: REPOSITORY, HONE_MODEL_FOLDERS: folder.path } });
    calm = await play("calm");
    model = path.join(folder.path, "model");
    await cp(path.join(stack.stateFolder, calm.ended.checkpoint), model, { recursive: true });
  });
  after(async () => {
    await stack?.[Symbol.asyncDispose]();
    await folder?.[Symbol.asyncDispose]();
  });

  /** Plays the example in small. */
  async function play(name: string, { killed = [], changes = {} }: Options = {}): Promise<Played> {
    const example = parseRunFile(await readFile(path.join(EXAMPLE, "run.yaml"), "utf8"));
    const victims = [...killed];
    const { trainer, rollout, policies = {}, ...rest } = example;
    const { rival } = policies;
    const run = {
      ...rest,
      name,
      policies: { rival, past: { earlier: { every: 1, size: 2 } } },
      rollout: { ...rollout, tasksPerStep: 8 },
      trainer: { ...trainer, steps: STEPS, stateEvery: 2, eval: { every: 0, tasks: 4, modes: ["sampled"] } },
      ...changes,
    };
    const finished = await runToEnd(stack, await inlineFiles(resolveRunConfig(run), REPOSITORY), {
      deadlineMs: DEADLINE_MS,
      onEvent: async ({ kind }) => {
        const victim = kind.case === "stepCompleted" ? victims.shift() : undefined;
        if (victim !== undefined) await stack.kill(victim);
      },
    });
    assert.deepEqual(victims, []);
    const [row] = await stack.sql<{ files: Record<string, string> }[]>`
      select state_files as files from trainer.runs where run_id = ${finished.runId}`;
    const weights = Object.entries(row?.files ?? {}).filter(([file]) =>
      path.basename(file).includes("model.safetensors"),
    );
    return { ...finished, weights: Object.fromEntries(weights) };
  }
  const pretrained = (changes: Readonly<Record<string, unknown>>) => ({ warmStart: undefined, ...changes });

  test("trains each policy on the parts that its roles played, with the logprobs of its own sampling", async () => {
    assert.deepEqual(Object.keys(calm.weights).sort(), [WEIGHTS, RIVAL_WEIGHTS]);
    assert.notEqual(calm.weights[WEIGHTS], calm.weights[RIVAL_WEIGHTS]);
    const rows = await stack.sql<{ role: string; tokens: number }[]>`
      select role, sum(sampled_tokens)::int as tokens from trainer.ledger
      where run_id = ${calm.runId} and version > 0 group by role order by role`;
    // Earlier versions are played with and not trained.
    assert.deepEqual(
      rows.map(({ role }) => role),
      ["learner", "rival"],
    );
    for (const { metrics } of calm.steps) {
      for (const role of ["learner", "rival", "past"]) {
        assert.ok(Number.isFinite(metrics[`role/${role}/reward/mean`]), `what ${role} earned`);
      }
      for (const area of ["", "policy/rival/"]) {
        assert.ok(metrics[`${area}mismatch/max`]! < 1e-4, `${area} ${metrics[`${area}mismatch/max`]}`);
        assert.ok(metrics[`${area}grad_norm`]! > 0, area);
      }
    }
  });

  test("ends with the same bytes through kills of trainer, engine and agents", async () => {
    const killed = await play("killed", { killed: ["trainer", "inference-gateway", "agent-rollout"] });
    assert.deepEqual(killed.weights, calm.weights);
  });

  test("exports every policy that learns, each as a folder that loads as a model", async () => {
    const checkpoint = path.join(stack.stateFolder, calm.ended.checkpoint);
    assert.deepEqual(await readdir(path.join(checkpoint, "policies")), ["rival"]);
    const [own, rival] = [await inspectModel(checkpoint), await inspectModel(`${checkpoint}/policies/rival`)];
    assert.deepEqual(rival.spec, own.spec);
  });

  test("hone diff finds the step in which the weights of a further policy part, though those of the run's own do not", async () => {
    const { rival, past } =
      parseRunFile(await readFile(path.join(EXAMPLE, "run.yaml"), "utf8")).policies ?? {};
    const optimizer = { kind: "adamw", learningRate: 0.01 };
    const changed = await play("changed", {
      changes: { policies: { rival: { ...rival, optimizer }, past } },
    });
    const { code, output } = await stack.hone("diff", calm.runId, changed.runId);
    assert.equal(code, 0, output);
    assert.match(output, /they part in step 1:\n {2}the weights of the policy rival after it differ\n/);
  });

  test("keeps the earlier versions that are played, and no others", async () => {
    const kept = await readdir(path.join(stack.stateFolder, "runs", calm.runId, "earlier"));
    assert.deepEqual(kept.sort(), [`past-${STEPS - 1}`, `past-${STEPS}`]);
  });

  test("trains two sets of adapters on one base", async () => {
    const lora = { rank: 2, alpha: 4 };
    const { runId, weights } = await play("adapters", {
      changes: pretrained({ model: { path: model, lora } }),
    });
    const [own, rival] = ["", "policies/rival/"].map((place) => weights[`${place}adapter_model.safetensors`]);
    assert.ok(own !== undefined && rival !== undefined);
    assert.notEqual(own, rival);
    const kept = await readdir(path.join(stack.stateFolder, "runs", runId, "model"));
    assert.deepEqual(kept.sort(), ["base", "origin.json"]);
  });

  test("lets a policy begin with a model of its own, and earlier versions be those of that policy", async () => {
    const other = path.join(model, "policies", "rival");
    const { weights, runId } = await play("own", {
      changes: pretrained({
        model: { path: model },
        policies: { rival: { model: { path: other } }, past: { earlier: { of: "rival", every: 2 } } },
      }),
    });
    assert.deepEqual(Object.keys(weights).sort(), [WEIGHTS, RIVAL_WEIGHTS]);
    const kept = path.join(stack.stateFolder, "runs", runId, "earlier", "past-2", "policies", "rival");
    assert.ok((await readdir(kept)).includes(WEIGHTS));
  });
});
