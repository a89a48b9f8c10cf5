import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { temporaryFolder } from "@hone/testing";
import {
  agentOfPart,
  curriculaOf,
  judgesOfPart,
  maxConcurrencyOfPart,
  maxTurnsOfPart,
  modulesOf,
  taskPartsOf,
} from "../schema/task-parts.ts";
import { inlineFiles } from "./inline-files.ts";
import { parseRunFile, resolveRunConfig } from "./parse-run-file.ts";
import { problemsOf } from "./testing.ts";

const lake = (from: number, to: number) => ({
  source: "environment",
  environment: "frozen_lake",
  seeds: { from, to },
});
const rows = { source: "jsonl", path: "rows.jsonl" };

/** A run file over a lake and rows of a dataset. */
const fileWith = (train: readonly object[], evaluation?: readonly object[], changes: object = {}) =>
  JSON.stringify({
    name: "mix",
    model: { path: "owner/name" },
    dataset: {
      train: { source: "mix", parts: train },
      ...(evaluation !== undefined && { eval: { source: "mix", parts: evaluation } }),
    },
    agent: { name: "gym", modules: ["own.ts"] },
    rollout: { tasksPerStep: 8, groupSize: 4, maxTurns: 10 },
    trainer: { steps: 10, optimizer: { kind: "adamw", learningRate: 0.001 } },
    ...changes,
  });

const group = { kind: "group", baseUrl: "http://h/v1", model: "m", rubric: "r" };
const SOLVER = { name: "single_turn", config: { systemPrompt: "Solve." }, modules: ["solver.ts"] };
const PARTS = [
  {
    tasks: lake(0, 100),
    groups: 6,
    maxTurns: 5,
    maxConcurrency: 3,
    curriculum: { kind: "success", low: 0.2 },
  },
  { name: "sums", tasks: rows, groups: 2, agent: SOLVER, judge: [{ kind: "exact" }] },
];

describe("a mix of environments and rows", () => {
  test("names a part after its environment, and gives each part what is its own or else the run's", () => {
    const run = parseRunFile(fileWith(PARTS, [{ name: "sums", tasks: rows }]));
    assert.deepEqual(
      taskPartsOf(run).map(({ split, name, path: at }) => [split, name, at.join(".")]),
      [
        ["train", "frozen_lake", "dataset.train.parts.0.tasks"],
        ["train", "sums", "dataset.train.parts.1.tasks"],
        ["eval", "sums", "dataset.eval.parts.0.tasks"],
      ],
    );
    assert.deepEqual(agentOfPart(run, "sums"), SOLVER);
    assert.equal(agentOfPart(run, "frozen_lake"), run.agent);
    assert.deepEqual(
      judgesOfPart(run, "sums").map(({ kind }) => kind),
      ["exact"],
    );
    assert.equal(judgesOfPart(run, "frozen_lake"), run.judge);
    assert.equal(maxTurnsOfPart(run, "frozen_lake"), 5);
    assert.equal(maxTurnsOfPart(run, "sums"), 10);
    assert.equal(maxConcurrencyOfPart(run, "frozen_lake"), 3);
    assert.equal(maxConcurrencyOfPart(run, "sums"), undefined);
    assert.deepEqual(modulesOf(run), ["own.ts", "solver.ts"]);
    assert.deepEqual(
      curriculaOf(run).map(({ part, key }) => [part, key]),
      [["frozen_lake", "dataset.train.parts[0].curriculum"]],
    );
  });

  test("may have judges that compare groups in one of its parts", () => {
    const run = parseRunFile(
      fileWith([{ tasks: lake(0, 9) }, { name: "sums", tasks: rows, judge: [group] }]),
    );
    assert.deepEqual(
      judgesOfPart(run, "sums").map(({ kind }) => kind),
      ["group"],
    );
  });

  test("is the same after it was stored and read again", () => {
    const run = parseRunFile(fileWith(PARTS));
    assert.deepEqual(resolveRunConfig(JSON.parse(JSON.stringify(run))), run);
  });

  test("inlines the files of its parts' agents", async () => {
    await using folder = await temporaryFolder("mix-inline");
    await mkdir(path.join(folder.path, "agents"));
    await writeFile(path.join(folder.path, "agents/solver.yaml"), "systemPrompt: Solve.\n");
    const agent = { name: "single_turn", configPath: "agents/solver.yaml" };
    const run = parseRunFile(fileWith([{ name: "sums", tasks: rows, agent }]));
    assert.deepEqual(agentOfPart(await inlineFiles(run, folder.path), "sums"), {
      name: "single_turn",
      config: { systemPrompt: "Solve." },
    });
    const missing = parseRunFile(
      fileWith([{ name: "sums", tasks: rows, agent: { ...agent, configPath: "no.yaml" } }]),
    );
    await assert.rejects(
      inlineFiles(missing, folder.path),
      /`dataset\.train\.parts\[0\]\.agent\.configPath` is "no\.yaml"/,
    );
  });

  const refusals: [what: string, file: string, key: string, allowed: RegExp][] = [
    [
      "two parts of one name",
      fileWith([{ tasks: lake(0, 9) }, { tasks: lake(9, 18) }]),
      "dataset.train.parts[1].name",
      /a name that no other part has \("frozen_lake" is taken\)/,
    ],
    [
      "a part without a name that has an agent",
      fileWith([{ tasks: rows, agent: SOLVER }]),
      "dataset.train.parts[0].name",
      /given where a part has keys of its own/,
    ],
    [
      "groups of some parts only",
      fileWith([{ tasks: lake(0, 9), groups: 8 }, { tasks: rows }]),
      "dataset.train.parts[1].groups",
      /given for every part, or for none/,
    ],
    [
      "groups that are not those of a step",
      fileWith([{ tasks: lake(0, 9), groups: 7 }]),
      "dataset.train.parts[0].groups",
      /\(7\) add up to rollout\.tasksPerStep \(8\)/,
    ],
    [
      "groups and a weight",
      fileWith([{ tasks: lake(0, 9), groups: 8, weight: 2 }]),
      "dataset.train.parts[0].weight",
      /left out where groups are given/,
    ],
    [
      "a curriculum of held-out tasks",
      fileWith([{ tasks: lake(0, 9) }], [{ tasks: lake(9, 18), curriculum: { kind: "success" } }]),
      "dataset.eval.parts[0].curriculum",
      /left out in dataset\.eval/,
    ],
    [
      "more turns than a rollout has",
      fileWith([{ tasks: lake(0, 9), maxTurns: 11 }]),
      "dataset.train.parts[0].maxTurns",
      /at most rollout\.maxTurns \(10\)/,
    ],
    [
      "a limit of its own without a name",
      fileWith([{ tasks: rows, maxConcurrency: 2 }]),
      "dataset.train.parts[0].name",
      /given where a part has keys of its own/,
    ],
    [
      "no seeds",
      fileWith([{ tasks: lake(9, 9) }]),
      "dataset.train.parts[0].tasks.seeds.to",
      /greater than from \(9\)/,
    ],
    [
      "a judge of rows for an environment",
      fileWith([{ tasks: lake(0, 9), judge: [{ kind: "exact" }] }]),
      "dataset.train.parts[0].judge[0].kind",
      /an environment has none/,
    ],
    [
      "the run's judge of rows, which judges an environment too",
      fileWith([{ tasks: lake(0, 9) }, { tasks: rows }], undefined, { judge: [{ kind: "exact" }] }),
      "judge[0].kind",
      /an environment has none/,
    ],
    [
      "a judge of groups for a part, beside a baseline",
      fileWith([{ tasks: lake(0, 9), judge: [group] }], undefined, {
        algorithm: { advantage: { kind: "remax" } },
      }),
      "dataset.train.parts[0].judge[0].kind",
      /whose baseline is in no group/,
    ],
    [
      "an unknown key of a part",
      fileWith([{ tasks: lake(0, 9), wieght: 1 }]),
      "dataset.train.parts[0].wieght",
      /weight/,
    ],
    [
      "a mix within a mix",
      fileWith([{ tasks: { source: "mix", parts: [] } }]),
      "dataset.train.parts[0].tasks.source",
      /environment/,
    ],
  ];
  for (const [what, file, key, allowed] of refusals) {
    test(`is refused with ${what}`, () => {
      const problems = problemsOf(() => parseRunFile(file));
      const found = problems.find((problem) => problem.key === key);
      assert.ok(found !== undefined, JSON.stringify(problems));
      assert.match(found.allowed, allowed);
    });
  }

  test("may have judges of rows for its rows alone", () => {
    const run = parseRunFile(fileWith(PARTS));
    assert.equal(run.judge[0]?.kind, "environment");
  });
});
