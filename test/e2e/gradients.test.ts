import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { inlineFiles, parseRunFile, type RunConfig } from "@hone/config";
import { chromiumOrSkip } from "@hone/testing/chromium";
import { runToEnd } from "../support/follow.ts";
import { placeOf, storedGroups } from "../support/inspect/stored-groups.ts";
import { readGradientTables, readTokenCards } from "../support/inspect/token-cards.ts";
import { readPlainModel } from "../support/plain/plain-decoder.ts";
import {
  PLAIN_CISPO,
  PLAIN_GRPO,
  PLAIN_GRPO_WITH_KL,
  PLAIN_GSPO,
  PLAIN_REINFORCE,
  PLAIN_UNSCALED_GRPO,
  type PlainAlgorithm,
  trainPlainly,
} from "../support/plain/plain-training.ts";
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

/** The record of a rollout, or of the part that a role played. */
interface PartAnswer {
  readonly role: string | null;
  readonly policy: string | null;
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

/** What the page draws of a rollout. */
interface RolloutAnswer {
  readonly turns: readonly Strip[];
  readonly tails: readonly Strip[];
}

interface Strip {
  readonly sample: number;
  readonly tokens: readonly { readonly isSampled: boolean }[];
}

/** By the rollout's slot, and its role where it has one. */
type Parts = ReadonlyMap<string, PartAnswer>;

const { chromium, skip } = await chromiumOrSkip("the cards of trained tokens are");

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

      test("the page's cards and tables say what the record says", { skip }, async () => {
        await compareCards(recorded);
        await compareTables(recorded);
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

  describe("two policies that learn a game against each other", () => {
    let runId: string;
    before(async () => {
      ({ runId } = await runToEnd(stack, await shortSelfPlay(), { deadlineMs: RUN_DEADLINE_MS }));
    });

    test("the page's cards and tables say what the record says", { skip }, async () => {
      await compareCards(runId);
      await compareTables(runId);
    });

    test("plain float64 maths finds the same for every token of either role", async () => {
      // No checkpoint is made of what the first step begins with.
      for (let step = 2; step <= STEPS; step++) {
        const answers = await recordedTokens(runId, step);
        const learners = { learner: null, rival: "rival" };
        assert.deepEqual(
          [...new Set([...answers.values()].map(({ role, policy }) => `${role} ${policy}`))].sort(),
          Object.entries(learners).map(([role, policy]) => `${role} ${policy}`),
        );
        for (const [role, policy] of Object.entries(learners)) {
          const checkpoint = path.join(stack.stateFolder, "runs", runId, "checkpoints", `step-${step - 1}`);
          const model = readPlainModel(path.join(checkpoint, policy === null ? "" : `policies/${policy}`));
          const expected = trainPlainly(
            storedGroups(stack, runId, step, role),
            model,
            model,
            PLAIN_UNSCALED_GRPO,
          );
          const own = new Map([...answers].filter(([, part]) => part.role === role));
          comparePart(runId, own, expected);
          await compareTop(runId, step, expected, policy);
        }
      }
    });
  });

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
    const expected = trainPlainly(storedGroups(stack, recorded, step), model(step - 1), model(0), algorithm);
    comparePart(runId, answers, expected);
    await compareTop(runId, step, expected);
    return [...expected.values()].flat().map(({ cut }) => cut);
  }

  /** Compares every token that a policy learnt from in a step. */
  function comparePart(runId: string, answers: Parts, expected: ReturnType<typeof trainPlainly>): void {
    assert.deepEqual([...answers.keys()].sort(), [...expected.keys()].sort());
    assert.ok(expected.size > 1);
    const pairs = [...expected].flatMap(([slot, tokens]) => {
      const answer = answers.get(slot)!;
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
    near(total, 1, "the sum of all shares");
  }

  /** What `hone tokens` prints of each recorded rollout of a step. */
  async function recordedTokens(runId: string, step: number): Promise<Parts> {
    const rows = await stack.sql`
      select distinct slot from trainer.token_records where run_id = ${runId} and version = ${step} order by slot`;
    const answers = new Map<string, PartAnswer>();
    for (const { slot } of rows) {
      const answer = await stack.page(`/api/runs/${runId}/rollouts/${slot}/tokens`);
      const { parts, step: trainedBy } = (await answer.json()) as { parts: PartAnswer[]; step: number };
      assert.equal(trainedBy, step);
      for (const part of parts) answers.set(placeOf(slot, part.role ?? undefined), part);
    }
    return answers;
  }

  /** Looks at a rollout with several parts, if the run has one. */
  async function compareCards(runId: string): Promise<void> {
    const [row] = await stack.sql`
      select slot from trainer.token_records where run_id = ${runId} group by slot order by count(*) desc, slot limit 1`;
    const place = `/runs/${runId}/rollouts/${row?.slot}`;
    const { parts } = (await (await stack.page(`/api${place}/tokens`)).json()) as { parts: PartAnswer[] };
    const { turns, tails } = (await (await stack.page(`/api${place}`)).json()) as RolloutAnswer;
    const ofSamples = Map.groupBy(
      parts.flatMap(({ role, policy, tokens }) => tokens.map((token) => ({ role, policy, ...token }))),
      ({ sample }) => sample,
    );
    const expected = [...turns, ...tails].flatMap(({ sample, tokens }) =>
      tokens.filter(({ isSampled }) => isSampled).map(() => ofSamples.get(sample)!.shift()!),
    );
    const cards = await readTokenCards(stack, chromium ?? "", place);
    assert.equal(cards.length, expected.length);
    cards.forEach((card, i) => {
      const { id, role, policy, advantage, passes } = expected[i]!;
      assert.equal(card["token id"]?.replaceAll(",", ""), String(id));
      assert.deepEqual([card.role, card["learnt by the policy"]], [role ?? undefined, policy ?? undefined]);
      const shown = Number(card.advantage?.replace("−", "-"));
      assert.ok(Math.abs(shown - advantage) <= 0.0005 + 1e-9, `${card.advantage} for ${advantage}`);
      assert.equal(card.sign, advantage < 0 ? "down" : "up");
      const ratio = Number(card.ratio);
      assert.ok(
        Math.abs(ratio - passes.at(-1)!.ratio) <= 0.001 * ratio,
        `${card.ratio} for ${passes.at(-1)!.ratio}`,
      );
    });
  }

  /** Looks at the newest step of a run. */
  async function compareTables(runId: string): Promise<void> {
    const { policies } = JSON.parse(await hone("step", runId, String(STEPS), "--json"));
    const tables = await readGradientTables(stack, chromium ?? "", `/runs/${runId}`);
    const shown = tables.map((rows) => rows.map(([rollout]) => rollout));
    const nameOf = ({ slot, role }: { slot: string; role?: string }) =>
      role === undefined ? slot : `${slot} ${role}`;
    assert.deepEqual(
      shown,
      policies.flatMap(({ topRollouts, topTokens }: Record<string, { slot: string }[]>) => [
        topRollouts!.map(nameOf),
        topTokens!.map(nameOf),
      ]),
    );
  }

  /** `hone step` names the rollouts that added most, in their order. */
  async function compareTop(
    runId: string,
    step: number,
    expected: ReturnType<typeof trainPlainly>,
    policy: string | null = null,
  ): Promise<void> {
    const { policies } = JSON.parse(await hone("step", runId, String(step), "--json"));
    const learnt = policies.find((each: { policy: string | null }) => each.policy === policy);
    const { topRollouts, topTokens, updates } = learnt;
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
    assert.equal(updates[0].gradNorm, row?.metrics[`${policy === null ? "" : `policy/${policy}/`}grad_norm`]);
  }
});

/** The example of self-play with few tasks, and one update in each step. */
async function shortSelfPlay(): Promise<RunConfig> {
  const file = path.join(REPOSITORY, "examples/05-multi-agent/self-play/run.yaml");
  const { policies = {}, ...run } = parseRunFile(readFileSync(file, "utf8"));
  const { rival } = policies;
  const one = { epochs: 1, minibatches: 1 };
  return inlineFiles(
    {
      ...run,
      policies: { rival: { ...rival, ...one }, past: { earlier: { every: 1, size: 2 } } },
      dataset: { ...run.dataset, eval: undefined },
      rollout: { ...run.rollout, tasksPerStep: 8, groupSize: 4 },
      algorithm: { ...run.algorithm, kl: { ...run.algorithm.kl, coefficient: 0 } },
      trainer: {
        ...run.trainer,
        ...one,
        steps: STEPS,
        checkpoint: { ...run.trainer.checkpoint, every: 1, keep: STEPS },
        eval: { ...run.trainer.eval, every: 0, tasks: undefined },
        keepRollouts: true,
      },
    },
    REPOSITORY,
  );
}

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

/** The figures are float32; those of the plain maths float64. */
function near(found: number, wanted: number, what: string): void {
  const tolerance = 1e-5 * Math.max(1, Math.abs(wanted));
  assert.ok(Math.abs(found - wanted) <= tolerance, `${what} is ${found}, expected ${wanted}`);
}
