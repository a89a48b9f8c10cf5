import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import type { ScoredEpisode } from "@hone/proto-gen/rollout";
import { temporaryFolder } from "@hone/testing";
import { type FinishedRun, runToEnd } from "../support/follow.ts";
import { scoredEpisodes } from "../support/inspect/scored-episodes.ts";
import { startStack, type TestStack } from "../support/stack.ts";
import { saveTinyModel } from "../support/tiny-model.ts";

/* One run trains on two games and on rows of a file, each with its own agent, judges and number of groups. */

const STEPS = 2;
const GROUP_SIZE = 2;
const GROUPS = { lake: 1, boxes: 2, sums: 1 };

const played = (environment: string, from: number, config: object) => ({
  source: "environment",
  environment,
  config,
  seeds: { from, to: from + 2 },
});

describe("a run over a mix", () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let stack: TestStack;
  let finished: FinishedRun;
  let scored: ScoredEpisode[];

  before(async () => {
    folder = await temporaryFolder("mix");
    const files = path.join(folder.path, "files");
    await mkdir(files);
    const row = { data_source: "sums", prompt: "1+1?", reward_model: { style: "rule", ground_truth: "2" } };
    await writeFile(path.join(files, "rows.jsonl"), `${JSON.stringify(row)}\n`);
    await saveTinyModel(path.join(folder.path, "model"));
    stack = await startStack({ env: { HONE_FILES: files, HONE_MODEL_FOLDERS: folder.path } });
    const lean = { systemPrompt: "", instruction: "", promptTemplate: "{neighbors}", historyTurns: 0 };
    const partsFrom = (seed: number) => [
      { name: "lake", tasks: played("frozen_lake", seed, { maxSteps: 2, formatPenalty: -1 }), maxTurns: 1 },
      { name: "boxes", tasks: played("sokoban", seed, { size: 6 }) },
      { name: "sums", tasks: { source: "jsonl", path: "rows.jsonl" } },
    ];
    const own = {
      lake: { groups: GROUPS.lake },
      boxes: { groups: GROUPS.boxes, agent: { name: "gym", config: { ...lean, promptTemplate: "{turn}" } } },
      sums: {
        groups: GROUPS.sums,
        agent: { name: "single_turn" },
        judge: [
          { kind: "exact", pattern: "[0-9]" },
          { kind: "regex", name: "any", pattern: "." },
        ],
      },
    };
    const parts = partsFrom(0).map((part) => ({ ...part, ...own[part.name as keyof typeof own] }));
    const run = {
      name: "mix",
      seed: 3,
      model: { path: path.join(folder.path, "model") },
      dataset: { train: { source: "mix", parts }, eval: { source: "mix", parts: partsFrom(9) } },
      agent: { name: "gym", config: lean },
      rollout: {
        tasksPerStep: 4,
        groupSize: GROUP_SIZE,
        maxTurns: 2,
        maxContextTokens: 64,
        sampling: { temperature: 1, maxNewTokens: 4 },
      },
      trainer: {
        steps: STEPS,
        eval: { every: 2, modes: ["greedy"] },
        optimizer: { kind: "adamw", learningRate: 0.001 },
      },
    };
    // Read while the run is active, because episodes are purged after its end.
    const episodes = scoredEpisodes(stack.bus, {
      run: "mix",
      count: STEPS * 4 * GROUP_SIZE,
      deadlineMs: 120_000,
    });
    finished = await runToEnd(stack, run, { deadlineMs: 120_000 });
    scored = await episodes;
  });
  after(async () => {
    await stack?.[Symbol.asyncDispose]();
    await folder?.[Symbol.asyncDispose]();
  });

  const ofPart = (part: string) => scored.filter(({ episode }) => episode?.task?.part === part);

  test("takes as many groups of each part as the file says, in every step", () => {
    assert.equal(finished.steps.length, STEPS);
    for (const { metrics } of finished.steps) {
      for (const [part, groups] of Object.entries(GROUPS)) {
        assert.equal(metrics[`part/${part}/groups`], groups);
        assert.equal(metrics[`part/${part}/episodes`], groups * GROUP_SIZE);
      }
      assert.ok(Number(metrics["mismatch/max"]) < 1e-4);
    }
  });

  test("plays each part with its own agent and number of turns", () => {
    for (const { episode } of ofPart("lake")) assert.equal(episode?.turns.length, 1);
    const prompts = (part: string) => ofPart(part).map(({ episode }) => episode?.turns[0]?.promptText ?? "");
    for (const prompt of prompts("lake")) assert.match(prompt, /user\n[-_OG]{4}<\|im_end\|>/);
    for (const prompt of prompts("boxes")) assert.match(prompt, /user\n1<\|im_end\|>/);
    for (const prompt of prompts("sums")) assert.match(prompt, /user\n1\+1\?<\|im_end\|>/);
  });

  test("judges each part by its own judges, and the others by the run's", () => {
    const judgesOf = (part: string) =>
      new Set(ofPart(part).map(({ scores }) => scores.map(({ judge }) => judge).join()));
    assert.deepEqual([...judgesOf("sums")], ["exact,any"]);
    assert.deepEqual([...judgesOf("lake")], ["environment"]);
    assert.deepEqual([...judgesOf("boxes")], ["environment"]);
  });

  test("evaluates every part, each by itself as well", () => {
    const last = finished.evaluations.at(-1);
    assert.equal(last?.metrics.tasks, 5);
    assert.equal(last?.metrics["part/lake/tasks"], 2);
    assert.equal(last?.metrics["part/boxes/tasks"], 2);
    assert.equal(last?.metrics["part/sums/tasks"], 1);
    assert.ok(last?.metrics["part/boxes/reward/mean"] !== undefined);
  });
});
