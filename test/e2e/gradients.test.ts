import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { inlineFiles, parseRunFile, type RunConfig } from "@hone/config";
import { runToEnd } from "../support/follow.ts";
import { readPlainModel } from "../support/plain-decoder.ts";
import {
  PLAIN_CISPO,
  PLAIN_GRPO,
  PLAIN_GRPO_WITH_KL,
  PLAIN_GSPO,
  PLAIN_REINFORCE,
  type PlainAlgorithm,
  type StoredRollout,
  trainPlainly,
} from "../support/plain-training.ts";
import { REPOSITORY, startStack, type TestStack } from "../support/stack.ts";

/*
 * From a token to its gradient, for short finished runs of three examples: what the page says of every trained token (advantage,
 * ratio, cut and share of the step's gradient) is computed again from the stored rollouts and the kept weights by plain float64
 * maths. The steps are trained again for this with one update each, as the weights between the updates of a step are not kept,
 * and by a policy that moves away from the one that sampled.
 */

const RUN_DEADLINE_MS = 300_000;
const STEPS = 3;
const ONE_UPDATE =
  "trainer.checkpoint.every=1,trainer.checkpoint.keep=9,trainer.epochs=1,trainer.minibatches=1,trainer.optimizer.learningRate=0.01";

interface Example {
  /** Of the run file, below examples. */
  readonly file: string;
  /** Folder that the files it names are relative to. */
  readonly base: string;
  /** So many that the groups of each step teach, and few enough for plain maths. */
  readonly tasksPerStep: number;
  readonly algorithms: Readonly<Record<string, PlainAlgorithm>>;
}

const EXAMPLES: Readonly<Record<string, Example>> = {
  "the frozen lake": {
    file: "01-frozen-lake/run.yaml",
    base: "examples/01-frozen-lake",
    tasksPerStep: 2,
    algorithms: {
      "its own algorithm": PLAIN_REINFORCE,
      "grpo with a narrow clip and the KL in the loss": PLAIN_GRPO_WITH_KL,
      "rloo with gspo": PLAIN_GSPO,
      "reinforce_plus_plus with cispo and the KL in the reward": PLAIN_CISPO,
    },
  },
  "an agent with tools": {
    file: "03-math-tools/run.yaml",
    base: ".",
    tasksPerStep: 8,
    algorithms: { "its own algorithm": PLAIN_GRPO },
  },
  "a program that plays through a session": {
    file: "04-any-agent/typescript.yaml",
    base: "examples/04-any-agent",
    tasksPerStep: 8,
    algorithms: { "its own algorithm": PLAIN_GRPO },
  },
};

interface TokenAnswer {
  readonly step: number;
  readonly reward: number;
  readonly share: number;
  readonly tokens: readonly {
    readonly sample: number;
    readonly position: number;
    readonly id: number;
    readonly behaviourLogprob: number;
    readonly advantage: number;
    readonly parts: { readonly episode: number; readonly kl: number };
    readonly share: number;
    readonly passes: readonly {
      readonly ratio: number;
      readonly cut: string;
      readonly coefficient: number;
    }[];
  }[];
}

describe("from a token to its gradient", { timeout: 900_000 }, () => {
  let stack: TestStack;
  before(async () => {
    stack = await startStack({ env: { HONE_FILES: REPOSITORY } });
  });
  after(() => stack?.[Symbol.asyncDispose]());

  for (const [title, example] of Object.entries(EXAMPLES)) {
    describe(title, () => {
      let recorded: string;
      before(async () => {
        const run = await shortRun(example);
        recorded = (await runToEnd(stack, run, { deadlineMs: RUN_DEADLINE_MS })).runId;
      });

      for (const [name, algorithm] of Object.entries(example.algorithms)) {
        test(`plain float64 maths finds the same for every token: ${name}`, async () => {
          const runId = await replayed(recorded, `${algorithm.settings},${ONE_UPDATE}`);
          const cuts = new Set<string>();
          for (let step = 1; step <= STEPS; step++) {
            for (const cut of await compareStep(recorded, runId, step, algorithm)) cuts.add(cut);
          }
          assert.ok(cuts.has("none") && cuts.size > 1, `cuts: ${[...cuts]}`);
        });
      }
    });
  }

  /** Runs a command that must succeed. @returns what it prints. */
  async function hone(...args: string[]): Promise<string> {
    const { code, output } = await stack.hone(...args);
    assert.equal(code, 0, output);
    return output;
  }

  async function replayed(runId: string, settings: string): Promise<string> {
    await hone("replay", runId, "--set", settings);
    const [row] = await stack.sql`
      select run_id from trainer.runs where name = ${`${runId.replace(/-\d+$/, "")}-replay`} order by request_sequence desc limit 1`;
    return row?.run_id ?? assert.fail(`${runId} has no replay`);
  }

  /** @returns the cuts of the step's tokens. */
  async function compareStep(
    recorded: string,
    runId: string,
    step: number,
    algorithm: PlainAlgorithm,
  ): Promise<string[]> {
    const runs = path.join(stack.stateFolder, "runs");
    const config = path.join(runs, runId, "checkpoints", "step-1");
    // Both begin with the same warm start, and no checkpoint is made of it.
    const model = (version: number) =>
      version === 0
        ? readPlainModel(path.join(runs, recorded, "kept-states", "0"), config)
        : readPlainModel(path.join(runs, runId, "checkpoints", `step-${version}`));
    const answers = await recordedTokens(runId, step);
    const expected = trainPlainly(storedGroups(recorded, step), model(step - 1), model(0), algorithm);
    assert.deepEqual([...answers.keys()].sort(), [...expected.keys()].sort());
    assert.ok(expected.size > 1);
    const pairs = [...expected].flatMap(([slot, tokens]) => {
      const answer = answers.get(slot)!;
      assert.equal(answer.step, step);
      assert.equal(answer.tokens.length, tokens.length);
      return answer.tokens.map((found, i) => ({
        found,
        wanted: tokens[i]!,
        where: `${runId}/${slot}, token ${i}`,
      }));
    });
    for (const { found, wanted, where } of pairs) {
      const [pass] = found.passes;
      near(found.parts.episode, wanted.parts.episode, `the episode's part of ${where}`);
      near(found.parts.kl, wanted.parts.kl, `the KL's part of ${where}`);
      near(found.advantage, wanted.advantage, `advantage of ${where}`);
      near(pass!.ratio, wanted.ratio, `ratio of ${where}`);
      assert.equal(pass!.cut, wanted.cut, `cut of ${where} at the ratio ${wanted.ratio}`);
      near(pass!.coefficient, wanted.coefficient, `coefficient of ${where}`);
    }
    // Every token has a part in every share.
    for (const { found, wanted, where } of pairs) near(found.share, wanted.share, `share of ${where}`);
    const total = pairs.reduce((sum, { found }) => sum + found.share, 0);
    const cuts = pairs.map(({ wanted }) => wanted.cut);
    near(total, 1, "the sum of all shares");
    await compareTop(runId, step, expected);
    return cuts;
  }

  /** What `hone tokens` prints of each recorded rollout of a step, by slot. */
  async function recordedTokens(runId: string, step: number): Promise<Map<string, TokenAnswer>> {
    const rows = await stack.sql`
      select slot from trainer.token_records where run_id = ${runId} and version = ${step} order by slot`;
    const answers = new Map<string, TokenAnswer>();
    for (const { slot } of rows) {
      const answer = await stack.page(`/api/runs/${runId}/rollouts/${slot}/tokens`);
      answers.set(slot, (await answer.json()) as TokenAnswer);
    }
    return answers;
  }

  /** `hone step` names the rollouts that added most, in their order. */
  async function compareTop(
    runId: string,
    step: number,
    expected: ReturnType<typeof trainPlainly>,
  ): Promise<void> {
    const { topRollouts, topTokens, updates } = JSON.parse(await hone("step", runId, String(step), "--json"));
    const shares = [...expected.values()].map((tokens) => tokens.reduce((sum, { share }) => sum + share, 0));
    shares.sort((a, b) => b - a);
    assert.equal(topRollouts.length, Math.min(10, shares.length));
    topRollouts.forEach(({ share, slot }: { share: number; slot: string }, i: number) => {
      near(share, shares[i]!, `share of the rollout ${slot}`);
    });
    const largest = Math.max(...[...expected.values()].flat().map(({ share }) => share));
    near(topTokens[0].share, largest, "share of the first token");
    assert.equal(updates.length, 1);
    const [row] = await stack.sql`
      select metrics from trainer.steps where run_id = ${runId} and version = ${step}`;
    assert.equal(updates[0].gradNorm, row?.metrics.grad_norm);
  }

  /** The trained groups of a step, from the file in the state folder. */
  function storedGroups(runId: string, step: number): StoredRollout[][] {
    const folder = path.join(stack.stateFolder, "runs", runId, "rollouts");
    const name = readdirSync(folder).find((each) => each.startsWith(`${step}-`))!;
    const { groups } = JSON.parse(
      gunzipSync(readFileSync(path.join(folder, name, "step.json.gz"))).toString("utf8"),
    );
    return groups.map(({ rollouts }: { rollouts: KeptRollout[] }) =>
      rollouts.map(({ slot, scores, outcome, samples }) => {
        assert.ok(["completed", "truncated"].includes(outcome), outcome);
        return {
          slot: `${slot.split}.${slot.step}.${slot.task}.${slot.index}`,
          reward: scores.reduce((sum, { weight, value }) => sum + weight * value, 0),
          samples,
        };
      }),
    );
  }
});

/** A run file of the examples with few tasks and steps, of which everything is kept. */
async function shortRun({ file, base, tasksPerStep }: Example): Promise<RunConfig> {
  const folder = path.join(REPOSITORY, "examples");
  const run = parseRunFile(readFileSync(path.join(folder, file), "utf8"));
  const { trainer, warmStart, dataset } = run;
  return inlineFiles(
    {
      ...run,
      ...(warmStart?.tasks !== undefined && { warmStart: { ...warmStart, tasks: 64 } }),
      dataset: { ...dataset, eval: undefined },
      rollout: { ...run.rollout, tasksPerStep, groupSize: 4 },
      trainer: {
        ...trainer,
        steps: STEPS,
        minibatches: 2,
        eval: { ...trainer.eval, every: 0, tasks: undefined },
        keepRollouts: true,
        keepStates: 1,
        optimizer: { ...trainer.optimizer, schedule: { ...trainer.optimizer.schedule, warmupSteps: 0 } },
      },
    },
    path.join(REPOSITORY, base),
  );
}

interface KeptRollout {
  readonly slot: {
    readonly split: string;
    readonly step: number;
    readonly task: number;
    readonly index: number;
  };
  readonly outcome: string;
  readonly scores: readonly { readonly weight: number; readonly value: number }[];
  readonly samples: StoredRollout["samples"];
}

/** The figures are float32; those of the plain maths float64. */
function near(found: number, wanted: number, what: string): void {
  const tolerance = 1e-5 * Math.max(1, Math.abs(wanted));
  assert.ok(Math.abs(found - wanted) <= tolerance, `${what} is ${found}, expected ${wanted}`);
}
