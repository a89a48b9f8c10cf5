import assert from "node:assert/strict";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { loadModel, saveCheckpoint } from "@hone/checkpoint";
import { initialiseWeights, resolveModelSpec } from "@hone/nn";
import { type TemporaryFolder, temporaryFolder } from "@hone/testing";
import { chatmlTokenizer, chatmlTokenizerFiles } from "@hone/tokenizer/testing";
import { publishRequest, refusalOf, runToEnd } from "../support/follow.ts";
import { startStack, type TestStack } from "../support/stack.ts";

/* A model learns from the conversations of a file: without reinforcement learning, beside it, and from a teacher that did. */

const RUN_DEADLINE_MS = 120_000;
const ANSWER_MS = 30_000;
const STEPS = 40;
const ANSWERS = ["red", "green", "blue"];

describe("a run that learns from a dataset", { timeout: 480_000 }, () => {
  let folder: TemporaryFolder;
  let stack: TestStack;
  /** The folder of what the first run made. */
  let teacher = "";

  const requestOf = (
    rows: string,
    changes: Record<string, unknown> = {},
  ): Record<string, unknown> & { name: string; rollout: object } => ({
    name: "supervised",
    model: { path: path.join(folder.path, "model") },
    warmStart: { kind: "sft", dataset: { source: "jsonl", path: rows }, epochs: 60, batchSize: 2 },
    dataset: {
      train: { source: "jsonl", path: "tasks.jsonl" },
      eval: { source: "jsonl", path: "tasks.jsonl" },
    },
    agent: { name: "single_turn" },
    judge: [{ kind: "exact" }],
    rollout: {
      tasksPerStep: 1,
      groupSize: 2,
      maxTurns: 1,
      maxContextTokens: 64,
      sampling: { maxNewTokens: 8 },
    },
    trainer: { steps: 0, optimizer: { kind: "adamw", learningRate: 0.01 } },
    ...changes,
  });

  before(async () => {
    folder = await temporaryFolder("supervised");
    const files = path.join(folder.path, "files");
    await mkdir(files);
    const write = (name: string, rows: readonly unknown[]) =>
      writeFile(path.join(files, name), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
    const prompts = ANSWERS.map((_, i) => `${i}?`);
    await write(
      "rows.jsonl",
      ANSWERS.map((response, i) =>
        i === 0
          ? {
              messages: [
                { role: "user", content: prompts[i] },
                { role: "assistant", content: response },
              ],
            }
          : { prompt: prompts[i], response },
      ),
    );
    await write(
      "tasks.jsonl",
      ANSWERS.map((answer, i) => ({
        prompt: prompts[i],
        reward_model: { style: "rule", ground_truth: answer },
      })),
    );
    await write("wrong.jsonl", [{ prompt: "0?", response: "red" }, { prompt: "1?" }]);
    const { vocabSize, stopTokenIds } = chatmlTokenizer();
    const spec = resolveModelSpec({
      vocabSize,
      hiddenSize: 32,
      numLayers: 2,
      numHeads: 2,
      maxPositions: 128,
      eosTokenIds: stopTokenIds,
    });
    const companions = chatmlTokenizerFiles();
    const model = { spec, weights: initialiseWeights(spec, 3), companions };
    await saveCheckpoint(path.join(folder.path, "model"), model);
    stack = await startStack({ env: { HONE_FILES: files, HONE_MODEL_FOLDERS: folder.path } });
  });
  after(async () => {
    await stack?.[Symbol.asyncDispose]();
    await folder?.[Symbol.asyncDispose]();
  });

  test("and from nothing else learns the rows' answers, ends with an export, and gives the same weights when its trainer is killed", async () => {
    let [loss, kills] = [Number.NaN, 0];
    const outcomeOf = async (isKilled: boolean) => {
      const finished = await runToEnd(stack, requestOf("rows.jsonl"), {
        deadlineMs: RUN_DEADLINE_MS,
        onEvent: async ({ kind }) => {
          if (kind.case !== "warmStartProgress") return;
          loss = kind.value.loss;
          if (!isKilled || kills > 0 || kind.value.updatesDone === 0) return;
          kills++;
          await stack.kill("trainer");
        },
      });
      const { weights } = await loadModel(path.join(stack.stateFolder, finished.ended.checkpoint));
      return { finished, weights };
    };
    const calm = await outcomeOf(false);
    assert.ok(loss < 0.05, `a loss of ${loss}`);
    const { finished } = calm;
    assert.deepEqual(finished.steps, []);
    assert.match(finished.ended.checkpoint, /step-0$/);
    const greedy = finished.evaluations.find(({ mode }) => mode === "greedy");
    assert.equal(greedy?.metrics["reward/mean"], 1);
    const states = path.join(stack.stateFolder, "runs", finished.runId, "state");
    assert.equal((await readdir(states)).length, 1);

    const killed = await outcomeOf(true);
    assert.equal(kills, 1);
    assert.deepEqual(killed.weights, calm.weights);
    teacher = path.join(stack.stateFolder, finished.ended.checkpoint);
  });

  /** Runs a request twice, the second time with the trainer killed in the middle. @returns the first run. */
  const runTwice = async (request: ReturnType<typeof requestOf>) => {
    const runs = [];
    for (const isKilled of [false, true]) {
      const steps: Record<string, number>[] = [];
      const finished = await runToEnd(stack, request, {
        deadlineMs: RUN_DEADLINE_MS,
        onEvent: async ({ kind }) => {
          if (kind.case !== "stepCompleted") return;
          steps.push(kind.value.metrics);
          if (isKilled && steps.length === STEPS / 2) await stack.kill("trainer");
        },
      });
      const { weights } = await loadModel(path.join(stack.stateFolder, finished.ended.checkpoint));
      const greedy = finished.evaluations.filter(({ mode }) => mode === "greedy").at(-1);
      runs.push({ weights, steps, reward: greedy?.metrics["reward/mean"] });
    }
    assert.deepEqual(runs[1]!.weights, runs[0]!.weights, "the weights of the run whose trainer was killed");
    return runs[0]!;
  };
  const algorithm = { loss: { kind: "ppo_clip" } };
  const trainer = { steps: STEPS, stateEvery: 4, optimizer: { kind: "adamw", learningRate: 0.01 } };

  test("beside reinforcement learning learns answers that it never sampled", async () => {
    const dataset = { source: "jsonl", path: "rows.jsonl" };
    const { steps, reward } = await runTwice({
      ...requestOf("rows.jsonl"),
      name: "beside",
      warmStart: undefined,
      algorithm: { ...algorithm, supervised: { dataset, coefficient: 1, batchSize: 3 } },
      trainer,
    });
    assert.equal(reward, 1);
    assert.equal(steps.length, STEPS);
    const [first, last] = [steps[0]!["supervised/loss"]!, steps.at(-1)!["supervised/loss"]!];
    assert.ok(last < first / 20, `a loss of ${first}, then of ${last}`);
  });

  test("is a teacher, from which a model learns without rewards", async () => {
    assert.notEqual(teacher, "", "the run before made a teacher");
    const { steps } = await runTwice({
      ...requestOf("rows.jsonl"),
      name: "pupil",
      warmStart: { kind: "sft", dataset: { source: "jsonl", path: "rows.jsonl" }, epochs: 12, batchSize: 2 },
      rollout: { ...requestOf("").rollout, tasksPerStep: 48, groupSize: 1 },
      algorithm: {
        ...algorithm,
        distillation: { teachers: [{ model: { path: teacher } }], useRewards: false },
      },
      trainer,
    });
    const [first, last] = [steps[0]!["distillation/kl/mean"]!, steps.at(-1)!["distillation/kl/mean"]!];
    assert.ok(last < first / 4, `a distance of ${first}, then of ${last}`);
  });

  test("is refused with the row that is not a conversation", async () => {
    const sequence = await publishRequest(stack.bus, JSON.stringify(requestOf("wrong.jsonl")));
    const { problems } = await refusalOf(stack.bus, sequence, ANSWER_MS);
    assert.equal(problems[0]?.key, "warmStart.dataset.path");
    assert.match(problems[0].message, /wrong\.jsonl:2 .*must have a non-empty text as response/);
  });
});
