import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Outcome } from "@hone/core";
import { algorithmSchema, MetricSet, type Rollout } from "@hone/rl";
import type { TrainingSample } from "@hone/train";
import { testConfig } from "../../testing/fake-run.ts";
import { askTeachers } from "./ask-teachers.ts";

type Context = Parameters<typeof askTeachers>[0];

function rolloutOf(task: number, logprobs: number[], outcome: Outcome = Outcome.completed): Rollout {
  const count = logprobs.length;
  return {
    slot: { split: "train", step: 1, task, index: 0 },
    attempt: 1,
    outcome,
    scores: [],
    samples: [
      {
        tokenIds: Uint32Array.from({ length: count + 1 }, (_, i) => i),
        lossMask: Uint8Array.from({ length: count + 1 }, (_, i) => Number(i > 0)),
        logprobs: Float32Array.from(logprobs),
        versions: [{ version: 0, tokenCount: count }],
      },
    ],
    metrics: {},
    turnCount: 1,
  };
}

/** What a model that finds each token as likely as this says of samples. */
const saying = (logprob: number) => async (samples: readonly TrainingSample[]) =>
  samples.map(({ weights }) => new Float32Array(weights.length).fill(logprob));

describe("askTeachers()", () => {
  const math = rolloutOf(0, [-1, -2]);
  const code = rolloutOf(1, [-3]);
  const lost = rolloutOf(1, [-1], Outcome.infraFailed);
  const row = (fields: object) => ({
    rowJson: JSON.stringify(fields),
    environment: "",
    environmentConfigJson: "",
  });
  const groups = [
    { task: row({ data_source: "math" }), rollouts: [math] },
    { task: row({ data_source: "code" }), rollouts: [code, lost] },
  ];
  const ask = async (distillation: unknown) => {
    const metrics = new MetricSet();
    const context = {
      run: { config: { ...testConfig(), algorithm: algorithmSchema.parse({ distillation }) } },
      engine: {
        referenceLogprobs: async (samples: readonly TrainingSample[]) => ({
          logprobs: await saying(-2)(samples),
        }),
      },
      reporter: { untilAvailable: (_: unknown, action: () => Promise<unknown>) => action() },
      teachers: new Map([[1, { logprobs: saying(-1), close: async () => undefined }]]),
    } as unknown as Context;
    const taught = await askTeachers(context, groups, metrics);
    return { taught: taught && new Map([...taught].map(([key, value]) => [key, [...value]])), metrics };
  };

  test("asks nobody where a run has no teachers", async () => {
    assert.equal((await ask(undefined)).taught, undefined);
  });

  test("a teacher without a model is version 0; rollouts that cannot be trained are not scored", async () => {
    const { taught, metrics } = await ask({ teachers: [{}] });
    assert.deepEqual(
      taught,
      new Map([
        [math, [-1, 0]],
        [code, [1]],
      ]),
    );
    assert.deepEqual(metrics.toRecord(), { "distillation/kl/mean": -0.25 });
  });

  test("teachers add up, each over the tasks that are its own", async () => {
    const { taught, metrics } = await ask({
      teachers: [{ coefficient: 0.5, where: { data_source: "math" } }, { model: { path: "a/b" } }],
    });
    assert.deepEqual(
      taught,
      new Map([
        [math, [-0.5, 1]],
        [code, [2]],
      ]),
    );
    assert.deepEqual(metrics.toRecord(), {
      "distillation/teacher_0/kl/mean": 0.5,
      "distillation/teacher_1/kl/mean": -1.25,
      "distillation/kl/mean": (0.5 - 0.5 - 2) / 3,
    });
  });
});
