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

describe("a run in eight bits", () => {
  let stack: TestStack;
  before(async () => {
    stack = await startStack();
  });
  after(() => stack?.[Symbol.asyncDispose]());

  /** @param training how the trainer computes; absent = as the rollouts. */
  async function stepsOf(name: string, training?: "none"): Promise<readonly Step[]> {
    const run = await lakeRun({ ...SHAPE, name });
    const { engine } = run.trainer;
    assert.equal(engine.kind, "onnx");
    const trainer = { ...run.trainer, engine: { ...engine, ...(training && { quantization: training }) } };
    const { runId } = await runToEnd(stack, { ...run, trainer }, { deadlineMs: DEADLINE_MS });
    return stack.sql<Step[]>`
      select state_digest as digest, metrics from trainer.steps where run_id = ${runId} and version > 0 order by version`;
  }
  const mismatches = (steps: readonly Step[]) => steps.map(({ metrics }) => metrics["mismatch/mean"]!);

  test("ends with the same bytes twice, and trains the policy that sampled", async () => {
    const [first, second] = [await stepsOf("int8-first"), await stepsOf("int8-second")];
    assert.equal(first.length, SHAPE.steps);
    assert.deepEqual(
      second.map(({ digest }) => digest),
      first.map(({ digest }) => digest),
    );
    // What is left is rounding that falls the other way, where float32 parts differ in their last bit.
    for (const mismatch of mismatches(first)) assert.ok(mismatch < 5e-4, `${mismatch}`);
  });

  test("differs from a policy that is trained in float32, which the mismatch shows", async () => {
    for (const mismatch of mismatches(await stepsOf("int8-float", "none")))
      assert.ok(mismatch > 3e-4, `${mismatch}`);
  });
});
