import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { loadModel } from "@hone/checkpoint";
import { parseRunFile } from "@hone/config";
import { Split, slotKey } from "@hone/core";
import { publishStored, slotFromWire, subjects } from "@hone/messaging";
import { allocateShared } from "@hone/nn";
import { type Sample, type ScoredEpisode, ScoredEpisodeSchema } from "@hone/proto-gen/rollout";
import { MODEL_VARIABLE, startRealVllm, temporaryFolder, torchPython, VLLM_VARIABLE } from "@hone/testing";
import { GradientRunner, ThreadSharing } from "@hone/train";
import { type FinishedRun, runToEnd } from "../support/follow.ts";
import { keepScoredEpisodes } from "../support/inspect/scored-episodes.ts";
import { REPOSITORY, startStack, type TestStack } from "../support/stack.ts";

/*
 * Compares the second example on a real vLLM server and two PyTorch workers over gloo with the embedded engines.
 *
 * Two runs of its file, each on a stack as a user starts it:
 *
 *   served     vLLM generates and FSDP2 trains. Its scored episodes are kept, and every version is exported.
 *   embedded   the embedded engines. The episodes of the first run are stored before this run requests any, so both train
 *              on identical batches. This run plays its own evaluations.
 *
 * The model is an untied copy, because vLLM's CPU build does not update a tied head (docs/engines.md).
 */

const vllm = process.env[VLLM_VARIABLE];
const model = process.env[MODEL_VARIABLE];
const { python, skip: isWithoutTorch } = torchPython(process.env);
const isWithoutVllm =
  (vllm === undefined || model === undefined) &&
  `not tested: ${VLLM_VARIABLE} must name a Python environment with vLLM, ${MODEL_VARIABLE} a folder with SmolLM2-135M-Instruct`;

const NAME = "arithmetic";
/** The example's folder in the project folder. */
const EXAMPLE = path.join("examples", "02-arithmetic");
const STEPS = 3;
const RANKS = 2;
/** The start model answers only 3 % correctly, which may leave a step without a gradient; about half of its answers are even. */
const EVEN = { kind: "regex", name: "even", pattern: "[02468]$", weight: 0.2 } as const;
/** Held-out tasks. */
const EVAL_TASKS = 20;
/** Both engines compute in float32, but sum in different orders. */
const MAX_LOGPROB_ERROR = 1e-3;
const MAX_GRADIENT_ERROR = 0.01;
/** Tolerance of a loss that is near 0, as the advantages of a group add up to 0. */
const MAX_LOSS_ERROR = 1e-3;
/** 19 of 20: if two tokens are about equally likely, another order of sums may choose the other one. */
const LEAST_EQUAL = 0.95;
const RUN_DEADLINE_MS = 2_400_000;
const UNTIE_DEADLINE_MS = 600_000;
const EPISODES_DEADLINE_MS = 30_000;
/** The row length that the trainer packs to. */
const PACKING = { maxRowTokens: 128, maxMicrobatchTokens: 1_024 };

/** Index of a held-out task's rollouts: the sampled one comes first. */
const EvalIndex = { sampled: 0, greedy: 1 } as const;

interface Played extends FinishedRun {
  /** Episodes of training and of evaluations. */
  readonly episodes: readonly ScoredEpisode[];
}

describe("the second example on vLLM and FSDP2", {
  skip: isWithoutVllm || isWithoutTorch,
  timeout: 3 * RUN_DEADLINE_MS,
}, () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let served: Played;
  let embedded: Played;
  /** Folder of the weights of a version of the first run: the start model, or an export. */
  const weightsOf = (version: number) => path.join(folder.path, `version-${version}`);
  const filesFolder = () => path.join(folder.path, "files");

  before(async () => {
    folder = await temporaryFolder("real-vllm-fsdp2");
    untie(model!, weightsOf(0));
    await copyRows(filesFolder());
    served = await playServed();
    embedded = await playEmbedded();
  });
  after(() => folder?.[Symbol.asyncDispose]());

  async function playServed(): Promise<Played> {
    const { maxContextTokens } = (await example()).rollout;
    await using server = await startRealVllm(vllm!, weightsOf(0), folder.path, maxContextTokens);
    await using stack = await startStack({
      env: {
        HONE_FILES: filesFolder(),
        HONE_MODEL_FOLDERS: folder.path,
        HONE_INFERENCE_ENGINE: "vllm",
        HONE_INFERENCE_ENGINE_URL: server.url,
        HONE_TRAINER_PYTHON: python,
        HONE_TRAINER_TORCH_DEVICE: "cpu",
      },
    });
    const played = await play(stack, { kind: "fsdp2", worldSize: RANKS });
    for (let version = 1; version <= STEPS; version++) {
      const args = ["export", played.runId, weightsOf(version), "--version", String(version)];
      const { code, output } = await stack.hone(...args);
      assert.equal(code, 0, output);
    }
    return played;
  }

  async function playEmbedded(): Promise<Played> {
    await using stack = await startStack({
      env: { HONE_FILES: filesFolder(), HONE_MODEL_FOLDERS: folder.path },
    });
    const training = served.episodes.filter(isOfTraining);
    let isStored = false;
    return await play(stack, { kind: "onnx" }, async ({ runId }) => {
      if (isStored) return;
      isStored = true;
      for (const scored of training) await storeAgain(stack, scored, runId);
    });
  }

  async function play(
    stack: TestStack,
    engine: object,
    onEvent: (event: { readonly runId: string }) => Promise<void> = async () => undefined,
  ): Promise<Played> {
    const run = await example();
    const { rollout, trainer } = run;
    const options = { deadlineMs: RUN_DEADLINE_MS, onEvent };
    await using kept = keepScoredEpisodes(stack.bus, NAME);
    const finished = await runToEnd(
      stack,
      {
        ...run,
        // Exports in float32 hold exactly the numbers that were served.
        model: { path: weightsOf(0), dtype: "float32" },
        judge: [...run.judge, EVEN],
        trainer: {
          ...trainer,
          engine,
          steps: STEPS,
          // One update per step, so that the figures of a step are those of its update.
          minibatches: 1,
          checkpoint: { every: 1, keep: STEPS },
          eval: { ...trainer.eval, every: 0 },
        },
      },
      options,
    );
    const evaluated = finished.evaluations.reduce((sum, { episodes }) => sum + Number(episodes), 0);
    assert.equal(evaluated, 2 * 2 * EVAL_TASKS);
    const count = STEPS * rollout.tasksPerStep * rollout.groupSize + evaluated;
    const episodes = await kept.all(count, EPISODES_DEADLINE_MS);
    assert.equal(new Set(episodes.map(keyOf)).size, count, "a rollout was made twice");
    return { ...finished, episodes };
  }

  test("the server's logprobs of each version are those of its weights, and not of the previous version's", async (context) => {
    let stale: readonly Sample[] = [];
    for (let version = STEPS; version >= 0; version--) {
      const own = samplesOf(served.episodes, version);
      assert.ok(own.length > 0, `no tokens of version ${version}`);
      await using scorer = await openScorer(weightsOf(version));
      const error = await scorer.largestError(own);
      context.diagnostic(`version ${version}: ${error} in ${countTokens(own)} sampled tokens`);
      assert.ok(error < MAX_LOGPROB_ERROR, `version ${version} differs by ${error}`);
      if (stale.length > 0) {
        const other = await scorer.largestError(stale);
        context.diagnostic(`version ${version + 1} by the weights of version ${version}: ${other}`);
        assert.ok(
          other > MAX_LOGPROB_ERROR,
          `version ${version + 1} differs from the one before by ${other}`,
        );
      }
      stale = own;
    }
  });

  test("identical batches give the same losses and gradients", (context) => {
    assert.deepEqual([served.steps.length, embedded.steps.length], [STEPS, STEPS]);
    served.steps.forEach(({ step, metrics: found }, i) => {
      const expected = embedded.steps[i]!.metrics;
      const summary = `step ${step}: ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`;
      for (const key of ["updates", "tokens/trained", "groups/used", "reward/mean"]) {
        assert.equal(found[key], expected[key], `${key} of ${summary}`);
      }
      assert.equal(found.updates, 1, summary);
      const [norm, wanted] = [Number(found.grad_norm), Number(expected.grad_norm)];
      const gradientError = Math.abs(norm / wanted - 1);
      const lossError = Math.abs(Number(found.loss) - Number(expected.loss));
      context.diagnostic(
        `step ${step}: gradient norm ${norm}, embedded ${wanted}, relative difference ${gradientError}; loss ${found.loss}, difference ${lossError}; mismatch/max ${found["mismatch/max"]}, embedded ${expected["mismatch/max"]}`,
      );
      assert.ok(wanted > 0 && gradientError < MAX_GRADIENT_ERROR, summary);
      assert.ok(lossError < MAX_LOSS_ERROR, summary);
      assert.ok(Number(found["mismatch/max"]) < MAX_LOGPROB_ERROR, summary);
    });
  });

  test("greedy continuations of held-out prompts are equal, before the first step and after the last", (context) => {
    for (const version of [0, STEPS]) {
      const [found, expected] = [served, embedded].map(({ episodes }) => greedyOf(episodes, version));
      assert.deepEqual([...found!.keys()].sort(), [...expected!.keys()].sort());
      assert.equal(found!.size, EVAL_TASKS);
      const equal = [...found!].filter(([key, ids]) => expected!.get(key) === ids).length;
      context.diagnostic(`version ${version}: ${equal} of ${found!.size} continuations are equal`);
      assert.ok(equal >= LEAST_EQUAL * found!.size, `version ${version}: ${equal} of ${found!.size}`);
    }
  });
});

/** The example's run file with the changes of this test. */
async function example() {
  return parseRunFile(await readFile(path.join(REPOSITORY, EXAMPLE, "run.yaml"), "utf8"));
}

/** Copies the example's rows to where its run file names them, with fewer held-out rows. */
async function copyRows(projectFolder: string): Promise<void> {
  const target = path.join(projectFolder, EXAMPLE);
  await mkdir(target, { recursive: true });
  for (const [name, count] of [
    ["train.jsonl", undefined],
    ["eval.jsonl", EVAL_TASKS],
  ] as const) {
    const rows = (await readFile(path.join(REPOSITORY, EXAMPLE, name), "utf8")).trimEnd().split("\n");
    await writeFile(path.join(target, name), `${rows.slice(0, count).join("\n")}\n`);
  }
}

/** Exports a version with the command line. */
function untie(source: string, target: string): void {
  const program = path.join(REPOSITORY, "scripts", "untie.ts");
  const ran = spawnSync(process.execPath, [program, source, target], {
    encoding: "utf8",
    timeout: UNTIE_DEADLINE_MS,
  });
  assert.equal(ran.status, 0, ran.stderr);
}

/** Publishes an episode as the judge does. */
async function storeAgain({ bus }: TestStack, scored: ScoredEpisode, runId: string): Promise<void> {
  const again = { ...scored, episode: { ...scored.episode!, runId } };
  const options = { messageId: `${runId}/${keyOf(scored)}` };
  await publishStored(bus, subjects.rolloutScored(runId), ScoredEpisodeSchema, again, options);
}

function keyOf({ episode }: ScoredEpisode): string {
  return slotKey(slotFromWire(episode?.slot));
}

function isOfTraining({ episode }: ScoredEpisode): boolean {
  return episode?.slot?.split === Split.train;
}

/** Samples of a version's rollouts with the run's sampling parameters, in the order of slots. */
function samplesOf(episodes: readonly ScoredEpisode[], version: number): Sample[] {
  return episodes
    .filter((scored) => isOfTraining(scored) || scored.episode?.slot?.index === EvalIndex.sampled)
    .toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
    .flatMap(({ episode }) => episode!.samples)
    .filter(({ versions }) => versions.every((span) => span.version === version));
}

function countTokens(samples: readonly Sample[]): number {
  return samples.reduce((sum, { logprobs }) => sum + logprobs.length, 0);
}

/** Token ids of the greedy continuations, by slot. */
function greedyOf(episodes: readonly ScoredEpisode[], version: number): Map<string, string> {
  const chosen = episodes.filter(({ episode }) => {
    const { split, step, index } = episode!.slot!;
    return split === Split.eval && step === version && index === EvalIndex.greedy;
  });
  const sampled = ({ tokenIds, lossMask }: Sample) => tokenIds.filter((_, i) => lossMask[i] === 1).join();
  return new Map(chosen.map((scored) => [keyOf(scored), scored.episode!.samples.map(sampled).join(";")]));
}

/** Opens the embedded engine with the weights of a folder. */
async function openScorer(folder: string) {
  const { spec, weights } = await loadModel(folder, { allocate: allocateShared });
  const runner = new GradientRunner(spec, {
    ...PACKING,
    threads: availableParallelism(),
    sharing: ThreadSharing.operators,
  });
  return {
    /** Largest |logprob when sampled - logprob under these weights|. */
    async largestError(samples: readonly Sample[]): Promise<number> {
      const { scores } = await runner.score(weights, samples);
      const summary = samples.flatMap((sample) => sample.logprobs);
      assert.equal(summary.length, scores.length);
      return summary.reduce((largest, logprob, i) => Math.max(largest, Math.abs(logprob - scores[i]!)), 0);
    },
    [Symbol.asyncDispose]: () => runner.close(),
  };
}
