import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { ConfigError, isTraining } from "@hone/config";
import { REPOSITORY } from "../project.ts";
import { type EvaluationOptions, evaluationRun } from "./evaluation-run.ts";
import { loadRunFile } from "./load-run-file.ts";

const NOTHING: EvaluationOptions = {
  model: undefined,
  tasks: undefined,
  samples: undefined,
  passAt: undefined,
  temperature: undefined,
  maxNewTokens: undefined,
  endpoint: undefined,
  hasGreedy: false,
};

describe("evaluationRun()", async () => {
  const { config } = await loadRunFile(join(REPOSITORY, "examples/01-frozen-lake/run.yaml"), REPOSITORY);

  test("is the run file without its training, under another name", () => {
    const run = evaluationRun(config, NOTHING);
    assert.equal(run.name, "frozen-lake-eval");
    assert.equal(isTraining(run.config), false);
    const { agent, judge, dataset, model, seed, rollout } = run.config;
    assert.deepEqual(
      { agent, judge, dataset, model, seed, rollout },
      {
        agent: config.agent,
        judge: config.judge,
        dataset: config.dataset,
        model: config.model,
        seed: config.seed,
        rollout: config.rollout,
      },
    );
    assert.deepEqual(run.config.trainer.eval.modes, ["sampled"]);
    assert.equal(evaluationRun({ ...config, name: "n".repeat(40) }, NOTHING).name.length, 40);
  });

  test("changes the model, the number of tasks and samples, and the sampling", () => {
    const { model, trainer, rollout } = evaluationRun(config, {
      ...NOTHING,
      model: { path: "/some/folder", revision: "main" },
      tasks: 3,
      samples: 8,
      passAt: [1, 8],
      temperature: 0.5,
      maxNewTokens: 2,
      hasGreedy: true,
    }).config;
    assert.deepEqual(model, { path: "/some/folder", revision: "main", dtype: "auto" });
    assert.deepEqual(trainer.eval, {
      every: 0,
      tasks: 3,
      modes: ["sampled", "greedy"],
      samples: 8,
      passAt: [1, 8],
      passReward: 1,
    });
    assert.equal(rollout.sampling.temperature, 0.5);
    assert.equal(rollout.sampling.maxNewTokens, 2);
  });

  test("evaluates only greedily at temperature 0", () => {
    const { trainer } = evaluationRun(config, { ...NOTHING, temperature: 0 }).config;
    assert.deepEqual(trainer.eval.modes, ["greedy"]);
  });

  const wrong: [what: string, options: Partial<EvaluationOptions>, key: string][] = [
    ["more tasks than there are", { tasks: 1_000_000 }, "trainer.eval.tasks"],
    ["pass@k with k above the number of samples", { samples: 4, passAt: [1, 8] }, "trainer.eval.passAt[1]"],
    ["several samples at temperature 0", { samples: 4, temperature: 0 }, "trainer.eval.samples"],
  ];
  for (const [what, options, key] of wrong) {
    test(`refuses ${what}`, () => {
      assert.throws(
        () => evaluationRun(config, { ...NOTHING, ...options }),
        (error) => error instanceof ConfigError && error.problems.some((problem) => problem.key === key),
      );
    });
  }
});
