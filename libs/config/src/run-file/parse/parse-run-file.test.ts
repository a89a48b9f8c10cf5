import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ConfigError, type ConfigProblem } from "../../errors.ts";
import { parseRunFile } from "./parse-run-file.ts";
import { parseYaml } from "./parse-text.ts";

const RUN = `
name: frozen-lake
seed: 7
model: { init: { architecture: qwen3, hiddenSize: 64, numLayers: 3, numHeads: 4, tokenizer: tokenizer.json } }
dataset:
  train: { source: environment, environment: frozen_lake, config: { size: 4 }, seeds: { from: 0, to: 1000 } }
agent: { name: frozen_lake, configPath: agent.yaml }
rollout: { tasksPerStep: 32, groupSize: 8, sampling: { temperature: 1, maxNewTokens: 16 } }
trainer: { steps: 200, optimizer: { kind: adamw, learningRate: 0.001 } }
`;

function problemsWith(text: string): readonly ConfigProblem[] {
  try {
    parseRunFile(text);
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.problems;
  }
  throw new assert.AssertionError({ message: "the file was accepted" });
}

describe("parseRunFile()", () => {
  test("fills in every default", () => {
    const run = parseRunFile(RUN);
    assert.equal(run.rollout.maxTurns, 10);
    assert.equal(run.rollout.sampling.topP, 1);
    assert.deepEqual(run.judge, [{ kind: "environment", weight: 1 }]);
    assert.deepEqual(run.algorithm.loss, {
      kind: "ppo_clip",
      clipLow: 0.2,
      clipHigh: 0.28,
      dualClip: 3,
      ratio: "token",
      aggregate: "token_mean",
      entropy: 0,
    });
    assert.equal(run.trainer.maxStaleness, 0);
    assert.equal(run.trainer.onNewVersion, "recompute");
    assert.deepEqual(run.trainer.engine, {
      kind: "onnx",
      microbatchTokens: 1_024,
      quantizedGradients: false,
    });
  });

  test("accepts outside agents by their own keys, and the resolved file gives the same configuration", () => {
    const rows = RUN.replace(/train: .*$/m, "train: { source: jsonl, path: train.jsonl }");
    const agentOf = (text: string) => {
      const run = parseRunFile(rows.replace(/^agent:.*$/m, `agent: ${text}`));
      assert.deepEqual(parseRunFile(JSON.stringify(run)), run);
      return run.agent;
    };
    assert.deepEqual(agentOf("{ command: [python3, agent.py], environment: { LEVEL: '3' } }"), {
      name: "command",
      config: { command: ["python3", "agent.py"], environment: { LEVEL: "3" } },
    });
    assert.deepEqual(agentOf("{ swarm: { leaseMs: 5000 }, exposeGroundTruth: true }"), {
      name: "swarm",
      config: { swarm: { leaseMs: 5_000, freeReturns: 8 }, exposeGroundTruth: true },
    });
    const model = { baseUrl: "http://models/v1", model: "critic", concurrency: 16 };
    assert.deepEqual(
      agentOf(
        "{ endpoint: 'http://agents/play', rewards: session, roles: { solver: {}, critic: { learn: false, endpoint: { baseUrl: 'http://models/v1', model: critic } } } }",
      ),
      {
        name: "endpoint",
        config: {
          endpoint: "http://agents/play",
          rewards: "session",
          roles: { solver: { learn: true }, critic: { learn: false, endpoint: model } },
        },
      },
    );
  });

  test("refuses outside agents whose keys contradict each other, and names the key", () => {
    const problemsOf = (text: string) =>
      problemsWith(RUN.replace(/^agent:.*$/m, `agent: ${text}`)).map(
        ({ key, allowed }) => `${key}: ${allowed}`,
      );
    const wrong: readonly [string, RegExp][] = [
      ["{ modules: [a.ts] }", /^agent\.name: a name, where command, endpoint and swarm are left out/],
      ["{ name: a, command: [b] }", /^agent\.command: left out where agent\.name is given/],
      ["{ command: [a], endpoint: 'http://b' }", /^agent\.endpoint: left out where agent\.command is given/],
      ["{ endpoint: 'http://b', environment: {} }", /^agent\.environment: left out where agent\.endpoint/],
      [
        "{ name: a, exposeGroundTruth: true }",
        /^agent\.exposeGroundTruth: left out where agent\.name is given/,
      ],
      ["{ command: [a], config: {} }", /^agent\.config: left out where agent\.command is given/],
      ["{ command: [a], environment: { OPENAI_API_KEY: x } }", /^agent\.environment\.OPENAI_API_KEY: /],
      ["{ command: [a], comand: [b] }", /^agent\.comand: .*command/],
      ["{ command: [a], roles: { a: { learn: false } } }", /^agent\.roles: at least one role that learns/],
      [
        "{ command: [a], roles: { a: { endpoint: { baseUrl: 'http://b', model: c } } } }",
        /^agent\.roles\.a\.learn: false for a role that an outside model answers/,
      ],
      ["{ command: [] }", /^agent\.command: /],
      ["{ swarm: { leaseMs: 5 } }", /^agent\.swarm\.leaseMs: /],
      ["{ endpoint: 'http://b', swarm: {} }", /^agent\.swarm: left out where agent\.endpoint is given/],
      ["{ swarm: {}, keyVariable: HONE_ENDPOINT_KEY }", /^agent\.keyVariable: left out where agent\.swarm/],
    ];
    for (const [text, expected] of wrong) assert.match(problemsOf(text).join("; "), expected, text);
  });

  test("accepts a pretrained model of which only the path is given", () => {
    const path = "owner/name";
    const { model } = parseRunFile(RUN.replace(/^model:.*$/m, `model: { path: ${path} }`));
    assert.deepEqual(model, { path, revision: "main", dtype: "auto" });
  });

  test("accepts adapters of which only the rank is given, and a KL penalty of which only the coefficient is given", () => {
    const model = "model: { path: owner/name, lora: { rank: 8 } }";
    const run = parseRunFile(
      `${RUN.replace(/^model:.*$/m, model)}algorithm: { kl: { coefficient: 0.01 } }\n`,
    );
    assert.ok("path" in run.model);
    assert.deepEqual(run.model.lora, { rank: 8, alpha: 16, targets: "all-linear" });
    assert.deepEqual(run.algorithm.kl, { coefficient: 0.01, kind: "k3" });
  });

  test("fills in the defaults of judges", () => {
    const rows = RUN.replace(/train: .*$/m, "train: { source: jsonl, path: train.jsonl }");
    const judges = "[ { kind: gsm8k }, { kind: exact, pattern: 'is (.*)', name: last, weight: 0.5 } ]";
    assert.deepEqual(parseRunFile(`${rows}judge: ${judges}`).judge, [
      { kind: "gsm8k", weight: 1, method: "strict" },
      { kind: "exact", weight: 0.5, name: "last", pattern: "is (.*)", flags: "", ignoreCase: false },
    ]);
  });

  test("accepts JSON", () => {
    assert.deepEqual(parseRunFile(JSON.stringify(parseYaml(RUN, "run.yaml"))), parseRunFile(RUN));
  });

  test("accepts a resolved run file, which is its own result", () => {
    const resolved = parseRunFile(RUN);
    assert.deepEqual(parseRunFile(JSON.stringify(resolved)), resolved);
  });

  const cases: Array<[what: string, from: string, to: string, key: string, message: RegExp]> = [
    [
      "an unknown key, with the nearest name",
      "groupSize",
      "grupSize",
      "rollout.grupSize",
      /did you mean `groupSize`/,
    ],
    [
      "an unknown key inside a union",
      "environment: frozen_lake",
      "enviroment: frozen_lake",
      "dataset.train.enviroment",
      /did you mean `environment`/,
    ],
    [
      "a wrong type",
      "seed: 7",
      'seed: "seven"',
      "seed",
      /`seed` is "seven"; it must be a value of type number/,
    ],
    [
      "a value out of range",
      "tasksPerStep: 32",
      "tasksPerStep: 0",
      "rollout.tasksPerStep",
      /is 0; it must be at least 1/,
    ],
    [
      "a word outside its vocabulary",
      "kind: adamw",
      "kind: sgd",
      "trainer.optimizer.kind",
      /is "sgd"; it must be "adamw"/,
    ],
    [
      "an unknown source",
      "source: environment",
      "source: csv",
      "dataset.train.source",
      /one of "environment", "jsonl", "parquet"/,
    ],
    [
      "a misspelt key of a pretrained model",
      RUN.match(/^model:.*$/m)![0],
      "model: { path: owner/name, revison: main }",
      "model.revison",
      /did you mean `revision`/,
    ],
    [
      "adapters on a projection that does not exist",
      RUN.match(/^model:.*$/m)![0],
      "model: { path: owner/name, lora: { rank: 8, targets: [q_proj, lm_head] } }",
      "model.lora.targets[1]",
      /one of "q_proj", "k_proj"/,
    ],
    [
      "adapters twice on one projection",
      RUN.match(/^model:.*$/m)![0],
      "model: { path: owner/name, lora: { rank: 8, targets: [q_proj, q_proj] } }",
      "model.lora.targets",
      /without repetitions/,
    ],
    [
      "a key of other programs' adapters",
      RUN.match(/^model:.*$/m)![0],
      "model: { path: owner/name, lora: { rank: 8, lora_alpha: 16 } }",
      "model.lora.lora_alpha",
      /is not a known key below `model.lora`.*; it must be one of rank, alpha, targets/,
    ],
    [
      "adapters on a model made from scratch",
      "model: {",
      "model: { lora: { rank: 8 },",
      "model.lora",
      /is not a known key below `model`/,
    ],
    [
      "an estimator of the KL divergence that does not exist",
      "seed: 7",
      "seed: 7\nalgorithm: { kl: { coefficient: 0.1, kind: low_var_kl } }",
      "algorithm.kl.kind",
      /one of "k1", "abs", "k2", "k3"/,
    ],
    [
      "a model that is both made from scratch and pretrained",
      "model: { init:",
      "model: { path: owner/name, init:",
      "model.path",
      /is not a known key below `model`; it must be one of init/,
    ],
    [
      "a judge of an unknown kind, with the nearest name",
      "seed: 7",
      "seed: 7\njudge: [ { kind: gsm9k } ]",
      "judge[0].kind",
      /did you mean `gsm8k`/,
    ],
    [
      "a pattern that is not a regular expression",
      "seed: 7",
      'seed: 7\njudge: [ { kind: regex, pattern: "(" } ]',
      "judge[0].pattern",
      /is "\("; it must be a regular expression of JavaScript/,
    ],
    [
      "a judge that compares with a ground truth that environments do not have",
      "seed: 7",
      "seed: 7\njudge: [ { kind: environment }, { kind: math } ]",
      "judge[1].kind",
      /"math" compares with the ground truth of rows and an environment has none/,
    ],
    [
      "bounds of a curriculum whose lower is above the upper",
      "dataset:\n",
      "dataset:\n  curriculum: { kind: success, low: 0.8, high: 0.2 }\n",
      "dataset.curriculum.low",
      /is 0\.8; it must be at most high \(0\.2\)/,
    ],
    [
      "rewards of turns where no judge gives any",
      "seed: 7",
      "seed: 7\njudge: [ { kind: format } ]\nalgorithm: { advantage: { kind: grpo, turnRewards: {} } }",
      "algorithm.advantage.turnRewards",
      /no judge rewards single turns \(one of the kinds environment, module, http\)/,
    ],
    ["an empty range of seeds", "to: 1000", "to: 0", "dataset.train.seeds.to", /greater than from/],
    [
      "heads that do not divide the width",
      "numHeads: 4",
      "numHeads: 5",
      "model.init.numHeads",
      /even whole number/,
    ],
    [
      "a name with characters that are not allowed",
      "name: frozen-lake",
      "name: Frozen Lake",
      "name",
      /a-z, 0-9/,
    ],
    [
      "more rollouts at once than a run may have",
      "steps: 200",
      "steps: 200, maxStaleness: 65",
      "trainer.maxStaleness",
      /is 65; it must be at most 64/,
    ],
    [
      "a choice for generations under way where there are none",
      "steps: 200",
      "steps: 200, onNewVersion: keep",
      "trainer.onNewVersion",
      /left out where maxStaleness is 0, as no generation is under way/,
    ],
  ];
  for (const [what, from, to, key, message] of cases) {
    test(`refuses ${what}`, () => {
      const problem = problemsWith(RUN.replace(from, to)).find((candidate) => candidate.key === key);
      assert.ok(problem, `no problem with ${key}`);
      assert.match(problem.message, message);
    });
  }

  test("says which key is missing and what it must be", () => {
    const [problem] = problemsWith(RUN.replace("tasksPerStep: 32, ", ""));
    assert.equal(problem?.key, "rollout.tasksPerStep");
    assert.match(problem.message, /`rollout\.tasksPerStep` is missing; it must be a value of type number/);
  });

  test("reports all problems, not only the first", () => {
    const keys = problemsWith(RUN.replace("seed: 7", "seed: -1").replace("groupSize: 8", "groupSize: 0")).map(
      ({ key }) => key,
    );
    assert.deepEqual(keys, ["seed", "rollout.groupSize"]);
  });

  test("gives line and column of an error in YAML", () => {
    assert.match(problemsWith(`${RUN}\n  x: [`)[0]!.message, /line 10, column 1/);
  });

  test("refuses a text that is not an object, and YAML whose aliases multiply", () => {
    for (const text of ["", "[]", "42", "just words"])
      assert.match(problemsWith(text)[0]!.message, /type object/);
    const bomb = ["a: &a [x,x,x,x,x,x,x,x,x]"];
    for (let i = 0; i < 8; i++) {
      const [from, to] = [String.fromCharCode(97 + i), String.fromCharCode(98 + i)];
      bomb.push(`${to}: &${to} [${Array(9).fill(`*${from}`).join(",")}]`);
    }
    assert.match(problemsWith(bomb.join("\n"))[0]!.message, /aliases/);
  });
});
