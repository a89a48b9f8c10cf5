import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { runToEnd } from "../support/follow.ts";
import { lakeRun } from "../support/lake-run.ts";
import { startStack, type TestStack } from "../support/stack.ts";

/* Runs whose rollouts, and the forward pass that trains on them, are computed in eight bits. */

const SHAPE = {
  steps: 3,
  tasksPerStep: 8,
  minibatches: 2,
  warmStartTasks: 64,
  evalTasks: 10,
  quantization: "int8",
} as const;
const DEADLINE_MS = 120_000;

interface Step {
  readonly digest: string;
  readonly metrics: Readonly<Record<string, number>>;
}

/** Wide enough for contexts in slots. */
const WIDE = {
  hiddenSize: 256,
  numLayers: 4,
  numHeads: 4,
  numKvHeads: 2,
  headDim: 64,
  intermediateSize: 512,
} as const;

/** A lake whose map takes more tokens than onnxruntime adds up in one go. */
const LONG = { size: 18, contextTokens: 512, turns: 3 } as const;

interface Options {
  readonly shape?: typeof WIDE;
  readonly isLong?: boolean;
  /** Keys of the engine that differ. */
  readonly engine?: Readonly<Record<string, unknown>>;
  /** A process that is killed after each step. */
  readonly killed?: readonly string[];
}

describe("a run in eight bits", () => {
  let stack: TestStack;
  let calm: readonly Step[];
  before(async () => {
    stack = await startStack();
    calm = await stepsOf("int8-calm");
  });
  after(() => stack?.[Symbol.asyncDispose]());

  async function stepsOf(
    name: string,
    { shape, isLong = false, engine = {}, killed = [] }: Options = {},
  ): Promise<readonly Step[]> {
    const long = { maxContextTokens: LONG.contextTokens, maxTurns: LONG.turns };
    const run = await lakeRun({
      ...SHAPE,
      name,
      ...(shape && { shape: { ...shape, ...(isLong && { maxPositions: LONG.contextTokens }) } }),
      ...(isLong && { environment: { size: LONG.size } }),
    });
    const trainer = { ...run.trainer, engine: { ...run.trainer.engine, ...engine } };
    const victims = [...killed];
    const { runId } = await runToEnd(
      stack,
      { ...run, rollout: { ...run.rollout, ...(isLong && long) }, trainer },
      {
        deadlineMs: DEADLINE_MS,
        onEvent: async ({ kind }) => {
          const victim = kind.case === "stepCompleted" ? victims.shift() : undefined;
          if (victim !== undefined) await stack.kill(victim);
        },
      },
    );
    assert.deepEqual(victims, []);
    return stack.sql<Step[]>`
      select state_digest as digest, metrics from trainer.steps where run_id = ${runId} and version > 0 order by version`;
  }
  const mismatches = (steps: readonly Step[]) => steps.map(({ metrics }) => metrics["mismatch/mean"]!);
  /** Log-probabilities are summed up in another way; a single rounding that fell otherwise would change all that follow it. */
  const assertOnPolicy = (steps: readonly Step[]) => {
    for (const mismatch of mismatches(steps)) assert.ok(mismatch < 2e-6, `${mismatch}`);
  };
  const digests = (steps: readonly Step[]) => steps.map(({ digest }) => digest);

  test("ends with the same bytes through kills of trainer and engine, and trains the policy that sampled", async () => {
    assert.equal(calm.length, SHAPE.steps);
    const killed = await stepsOf("int8-killed", { killed: ["trainer", "inference-gateway"] });
    assert.deepEqual(digests(killed), digests(calm));
    assertOnPolicy(calm);
  });

  for (const isLong of [false, true])
    test(`trains with the bits of generation where contexts lie in slots${isLong ? ", and are long" : ""}`, async () => {
      const steps = await stepsOf(isLong ? "int8-long" : "int8-wide", { shape: WIDE, isLong });
      assert.equal(steps.length, SHAPE.steps);
      assertOnPolicy(steps);
    });

  test("learns something else with gradients in eight bits, from the same policy", async () => {
    const steps = await stepsOf("int8-gradients", { engine: { quantizedGradients: true } });
    assert.equal(steps.length, SHAPE.steps);
    assertOnPolicy(steps);
    assert.notDeepEqual(digests(steps), digests(calm));
  });

  test("differs from a policy that is trained in float32, which the mismatch shows", async () => {
    for (const mismatch of mismatches(await stepsOf("int8-float", { engine: { quantization: "none" } })))
      assert.ok(mismatch > 3e-4, `${mismatch}`);
  });
});
