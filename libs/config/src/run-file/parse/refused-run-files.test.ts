import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseRunFile } from "./parse-run-file.ts";
import { problemsOf, RUN } from "./testing.ts";

describe("run files with a wrong key", () => {
  const refusals: Array<[what: string, from: string, to: string, key: string, allowed: RegExp]> = [
    ["a group of one", "groupSize: 8", "groupSize: 1", "rollout.groupSize", /at least 2, as grpo compares/],
    [
      "an advantage that needs a critic",
      "seed: 7",
      "seed: 7\nalgorithm: { advantage: { kind: gae } }",
      "trainer.critic",
      /given \(\{\} for the defaults\), as advantage.kind "gae" compares with the values of a critic/,
    ],
    [
      "a teacher with two models",
      "trainer: {",
      "algorithm: { distillation: { teachers: [{ model: { path: a/b }, endpoint: { baseUrl: 'http://h/v1', model: m } }] } }\ntrainer: {",
      "algorithm.distillation.teachers[0].endpoint",
      /left out where the teacher has a model/,
    ],
    [
      "a server that scores at another temperature than the run's",
      "temperature: 1, maxNewTokens: 16 } }\ntrainer: {",
      "temperature: 0.7, maxNewTokens: 16 } }\nalgorithm: { distillation: { teachers: [{ endpoint: { baseUrl: 'http://h/v1', model: m } }] } }\ntrainer: {",
      "algorithm.distillation.teachers[0].endpoint",
      /left out where rollout.sampling.temperature is 0.7/,
    ],
    [
      "a critic whose values nothing reads",
      "trainer: {",
      "trainer: { critic: {},",
      "trainer.critic",
      /left out, as advantage.kind "grpo" reads no values/,
    ],
    [
      "rewards of turns as the credit where no judge gives any",
      "seed: 7",
      "seed: 7\njudge: [ { kind: format } ]\nalgorithm: { advantage: { kind: reinforce, credit: turns } }",
      "algorithm.advantage.credit",
      /another one where no judge rewards single turns/,
    ],
    [
      "gigpo where no judge rewards turns",
      "seed: 7",
      "seed: 7\njudge: [ { kind: format } ]\nalgorithm: { advantage: { kind: gigpo } }",
      "algorithm.advantage.kind",
      /another one where no judge rewards single turns/,
    ],
    [
      "a normalisation of rewards that nobody reads",
      "seed: 7",
      "seed: 7\nalgorithm: { reward: { normalize: {} }, advantage: { kind: gdpo } }",
      "algorithm.reward.normalize",
      /left out, as advantage.kind "gdpo" does not read/,
    ],
    [
      "a normalisation within groups of one",
      "rollout: { tasksPerStep: 32, groupSize: 8,",
      "algorithm: { advantage: { kind: reinforce }, reward: { normalize: {} } }\nrollout: { tasksPerStep: 32, groupSize: 1,",
      "algorithm.reward.normalize.mean",
      /"batch" or "none" where rollout.groupSize is 1/,
    ],
    [
      "a penalty that would begin before the first token",
      "seed: 7",
      "seed: 7\nalgorithm: { reward: { overlong: { limit: 100, buffer: 200 } } }",
      "algorithm.reward.overlong.buffer",
      /at most overlong.limit \(100\)/,
    ],
    [
      "a distance in rewards that are not read",
      "seed: 7",
      "seed: 7\nalgorithm: { advantage: { kind: step_reinforce }, reward: { kl: { coefficient: 0.1 } } }",
      "algorithm.reward.kl",
      /left out, as advantage.kind "step_reinforce" does not read the rewards of episodes here/,
    ],
    [
      "shaped rewards beside a baseline",
      "seed: 7",
      "seed: 7\nalgorithm: { advantage: { kind: remax }, reward: { clip: 1 } }",
      "algorithm.reward.clip",
      /left out, as advantage.kind "remax" compares with a rollout whose reward is not shaped/,
    ],
    ["too many rollouts", "tasksPerStep: 32", "tasksPerStep: 9000", "rollout.tasksPerStep", /at most 50000/],
    [
      "too many rollouts with their baselines",
      "rollout: { tasksPerStep: 32",
      "algorithm: { advantage: { kind: remax } }\nrollout: { tasksPerStep: 6000",
      "rollout.tasksPerStep",
      /at most 50000 rollouts, baselines, .*here it may have 54000/,
    ],
    [
      "too many rollouts in all batches of a step",
      "rollout: { tasksPerStep: 32",
      "algorithm: { dynamicSampling: {} }\nrollout: { tasksPerStep: 1000",
      "rollout.tasksPerStep",
      /at most 50000 rollouts, .*here it may have 80000/,
    ],
    [
      "too many rollouts of which some are not needed",
      "rollout: { tasksPerStep: 32",
      "rollout: { redundancy: { tasks: 200, rollouts: 42 }, tasksPerStep: 1000",
      "rollout.tasksPerStep",
      /at most 50000 rollouts, .*here it may have 60000/,
    ],
    [
      "rollouts that are not needed beside a baseline",
      "rollout: { tasksPerStep: 32",
      "algorithm: { advantage: { kind: remax } }\nrollout: { redundancy: { tasks: 1 }, tasksPerStep: 32",
      "rollout.redundancy",
      /left out where advantage.kind is "remax", which waits for the baseline/,
    ],
    [
      "no rollout at once",
      "rollout: { tasksPerStep: 32",
      "rollout: { maxConcurrency: 0, tasksPerStep: 32",
      "rollout.maxConcurrency",
      /at least 1/,
    ],
    [
      "a deadline below what attempts have taken",
      "rollout: { tasksPerStep: 32",
      "rollout: { deadline: { factor: 0.5 }, tasksPerStep: 32",
      "rollout.deadline.factor",
      /at least 1/,
    ],
    [
      "groups of one that should differ",
      "rollout: { tasksPerStep: 32, groupSize: 8",
      "algorithm: { advantage: { kind: reinforce }, dynamicSampling: {} }\nrollout: { tasksPerStep: 32, groupSize: 1",
      "algorithm.dynamicSampling",
      /left out where rollout.groupSize is 1/,
    ],
    [
      "a judge of groups beside a baseline",
      "seed: 7",
      "seed: 7\njudge: [{ kind: group, baseUrl: http://127.0.0.1:9/v1, model: m, rubric: r }]\nalgorithm: { advantage: { kind: remax } }",
      "judge[0].kind",
      /another kind where advantage.kind is "remax", whose baseline is in no group/,
    ],
    [
      "more minibatches than groups",
      "steps: 200",
      "steps: 200, minibatches: 33",
      "trainer.minibatches",
      /at most rollout/,
    ],
    [
      "more new tokens than context",
      "temperature: 1, maxNewTokens: 16",
      "maxNewTokens: 5000",
      "rollout.sampling.maxNewTokens",
      /at most rollout.maxContextTokens/,
    ],
    [
      "a context beyond the model",
      "groupSize: 8",
      "groupSize: 8, maxContextTokens: 5000",
      "rollout.maxContextTokens",
      /at most model.init.maxPositions/,
    ],
    [
      "evaluations without tasks",
      / {2}eval: .*\n/.exec(RUN)![0],
      "",
      "trainer.eval.every",
      /left out where there is no dataset.eval/,
    ],
    [
      "more tasks than there are",
      "every: 20",
      "every: 20, tasks: 101",
      "trainer.eval.tasks",
      /at most the 100 tasks/,
    ],
    ["an endless evaluation", "to: 2100", "to: 1000000000", "dataset.eval.seeds.to", /at most 20000 tasks/],
    [
      "a warm-up longer than the run",
      "learningRate: 0.001",
      "learningRate: 0.001, schedule: { warmupSteps: 201 }",
      "trainer.optimizer.schedule.warmupSteps",
      /at most trainer.steps \(200\)/,
    ],
    [
      "a final rate of a constant one",
      "learningRate: 0.001",
      "learningRate: 0.001, schedule: { finalRatio: 0.1 }",
      "trainer.optimizer.schedule.finalRatio",
      /"constant", which ignores it/,
    ],
    [
      "no checkpoint kept",
      "steps: 200",
      "steps: 200, checkpoint: { keep: 0 }",
      "trainer.checkpoint.keep",
      /at least 1/,
    ],
    [
      "a number that is NaN",
      "learningRate: 0.001",
      "learningRate: .nan",
      "trainer.optimizer.learningRate",
      /a finite number/,
    ],
    [
      "NaN in a place that accepts any value",
      "historyTurns: 0",
      "historyTurns: .inf",
      "agent.config.historyTurns",
      /a finite number/,
    ],
    [
      "a date or bytes",
      "historyTurns: 0",
      "historyTurns: !!binary aGVsbG8=",
      "agent.config.historyTurns",
      /that JSON can express/,
    ],
    ["__proto__", "historyTurns: 0", "__proto__: { x: 1 }", "agent.config", /without the key __proto__/],
    ["a name with a path", "name: frozen-lake", "name: ../x", "name", /a-z, 0-9/],
    [
      "a very long name",
      "agent: { name: frozen_lake",
      `agent: { name: ${"x".repeat(129)}`,
      "agent.name",
      /at most 128 characters/,
    ],
  ];
  for (const [what, from, to, key, allowed] of refusals) {
    test(`refuses ${what}`, () => {
      const text = RUN.replace(from, to);
      assert.notEqual(text, RUN);
      const problem = problemsOf(() => parseRunFile(text)).find((candidate) => candidate.key === key);
      assert.match(problem?.allowed ?? "accepted", allowed);
    });
  }
});
