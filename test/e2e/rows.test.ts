import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { parseRunFile } from "@hone/config";
import type { ScoredEpisode } from "@hone/proto-gen/rollout";
import { temporaryFolder } from "@hone/testing";
import { chatmlTokenizer } from "@hone/tokenizer/testing";
import { type FinishedRun, publishRequest, refusalOf, runToEnd } from "../support/follow.ts";
import { scoredEpisodes } from "../support/inspect/scored-episodes.ts";
import { REPOSITORY, startStack, type TestStack } from "../support/stack.ts";
import { saveTinyModel } from "../support/tiny-model.ts";

/* A pretrained model answers the rows of a JSON Lines file in one turn each, and is trained on its answers. */

const STEPS = 2;
const TASKS_PER_STEP = 2;
const GROUP_SIZE = 2;
const RUN_DEADLINE_MS = 120_000;
const ANSWER_MS = 30_000;

/** Rows in the common schema; the second one names another agent. */
const ROWS = [
  {
    data_source: "sums",
    prompt: "1+1?",
    reward_model: { style: "rule", ground_truth: "2" },
    extra_info: { index: 0 },
  },
  {
    data_source: "sums",
    prompt: [{ role: "user", content: "2+2?" }],
    agent_name: "single_turn",
    agent_cfg_path: "brief.yaml",
    reward_model: { style: "rule", ground_truth: "4" },
    extra_info: { index: 1 },
  },
];

/** The run's own agent, with its own tool. */
const OWN_MODULE = `
import { buildToolbox, defineAgent, defineTool, promptOfRow, rolloutOf, toLangChainMessages, toLangChainTools, toolConfigShape } from "@hone/agents";
import { createReactAgent } from ${JSON.stringify("@langchain/langgraph/prebuilt")};
import { z } from ${JSON.stringify("zod")};
export const tools = {
  wave: defineTool({ name: "wave", description: "Waves", parameters: { type: "object" }, call: (): string => "~" }),
};
export const agents = {
  waver: defineAgent({
    configSchema: z.strictObject(toolConfigShape),
    needsEnvironment: false,
    async buildGraph(config, context) {
      const toolbox = await buildToolbox(config, context);
      const tools = toLangChainTools(toolbox);
      const llm = async (_state: unknown, runtime: { configurable?: Record<string, unknown> }) =>
        rolloutOf(runtime).model.bindTools(tools);
      return { toolbox, graph: createReactAgent({ llm, tools }) };
    },
    async run({ graph, toolbox }, rollout) {
      const tools = rollout.openTools(toolbox);
      await graph.invoke({ messages: toLangChainMessages(promptOfRow(rollout.task)) }, { configurable: { rollout, tools } });
      return { metrics: { waved: 1 } };
    },
  }),
};
`;

describe("a run over the rows of a file", () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  /** The project folder. */
  let files: string;
  let stack: TestStack;
  let finished: FinishedRun;
  let scored: ScoredEpisode[];

  const requestOf = (name: string, changes: Record<string, unknown> = {}) => ({
    name,
    seed: 3,
    model: { path: path.join(folder.path, "model") },
    dataset: {
      train: { source: "jsonl", path: "rows.jsonl" },
      eval: { source: "jsonl", path: "rows.jsonl" },
    },
    agent: { name: "single_turn" },
    rollout: {
      tasksPerStep: TASKS_PER_STEP,
      groupSize: GROUP_SIZE,
      maxTurns: 1,
      maxContextTokens: 64,
      sampling: { temperature: 1, maxNewTokens: 6 },
    },
    judge: [
      { kind: "regex", pattern: "[a-m]" },
      { kind: "exact", pattern: "[0-9]", weight: 2 },
    ],
    trainer: { steps: STEPS, optimizer: { kind: "adamw", learningRate: 0.001 } },
    ...changes,
  });

  before(async () => {
    folder = await temporaryFolder("rows");
    files = path.join(folder.path, "files");
    await mkdir(files);
    await writeFile(path.join(files, "rows.jsonl"), ROWS.map((row) => `${JSON.stringify(row)}\n`).join(""));
    await writeFile(path.join(files, "plain.jsonl"), '{"prompt":"Wave!"}\n');
    await writeFile(
      path.join(files, "named.jsonl"),
      '{"prompt":"a"}\n{"prompt":"a","agent_name":"single_trun"}\n',
    );
    await writeFile(path.join(files, "own.ts"), OWN_MODULE);
    await writeFile(path.join(files, "bad.jsonl"), '{"prompt":[]}\n');
    await writeFile(path.join(files, "brief.yaml"), "systemPrompt: Be brief.\n");
    await saveTinyModel(path.join(folder.path, "model"));
    stack = await startStack({ env: { HONE_FILES: files, HONE_MODEL_FOLDERS: folder.path } });
    // Read while the run is active, because episodes are purged after its end.
    const episodes = trainEpisodes(stack);
    finished = await runToEnd(stack, requestOf("rows"), { deadlineMs: RUN_DEADLINE_MS });
    scored = await episodes;
  });
  after(async () => {
    await stack?.[Symbol.asyncDispose]();
    await folder?.[Symbol.asyncDispose]();
  });

  test("trains what it sampled", () => {
    assert.equal(finished.steps.length, STEPS);
    for (const { metrics } of finished.steps) {
      assert.ok(Number(metrics["mismatch/max"]) < 1e-4, JSON.stringify(metrics));
    }
    assert.equal(finished.evaluations.length > 0, true);
  });

  test("formats each row with the chat template, for the agent that the row names", () => {
    const prompts = new Set(scored.map(({ episode }) => episode?.turns[0]?.promptText));
    assert.deepEqual(
      [...prompts].sort(),
      [
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n",
        "<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n",
      ].sort(),
    );
  });

  test("the judge gets the answer's text and the whole row", () => {
    assert.equal(scored.length, STEPS * TASKS_PER_STEP * GROUP_SIZE);
    const tokenizer = chatmlTokenizer();
    for (const { episode, reward, scores } of scored) {
      const row = ROWS.find(({ extra_info }) => episode?.task?.id === `rows.jsonl:${extra_info.index + 1}`);
      assert.deepEqual(JSON.parse(episode?.task?.rowJson ?? ""), row);
      const [turn] = episode?.turns ?? [];
      const [sample] = episode?.samples ?? [];
      assert.ok(turn !== undefined && sample !== undefined && episode?.turns.length === 1);
      const sampled = sample.tokenIds.slice(turn.sampledBegin, turn.sampledEnd);
      assert.equal(turn.responseText, tokenizer.decode(sampled, { skipSpecialTokens: true }));
      const values = [
        /[a-m]/.test(turn.responseText) ? 1 : 0,
        turn.responseText.match(/[0-9]/g)?.at(-1) === row?.reward_model.ground_truth ? 1 : 0,
      ];
      assert.deepEqual(
        scores.map(({ value }) => value),
        values,
      );
      assert.equal(reward, values[0]! + 2 * values[1]!);
    }
  });

  test("hone rescore scores its stored rollouts with other judges", async () => {
    const judges = path.join(folder.path, "judges.yaml");
    await writeFile(judges, "judge: [{ kind: regex, name: any, pattern: '.', flags: s, weight: 3 }]");
    const runId = scored[0]?.episode?.runId ?? "";
    const { code, output } = await stack.hone("rescore", runId, "--judges", judges, "--split", "train");
    assert.equal(code, 0, output);
    assert.match(output, /^before: reward mean .* over 8 rollouts$/m);
    assert.match(output, /^any +mean .* 8 scored$/m);
  });

  test("the run's own agent and tool play rollouts, with the packages of the services", async () => {
    const run = requestOf("own", {
      dataset: { train: { source: "jsonl", path: "plain.jsonl" } },
      agent: { name: "waver", modules: ["own.ts"], config: { tools: ["wave"] } },
      rollout: { ...requestOf("").rollout, maxContextTokens: 900 },
      judge: [{ kind: "regex", pattern: "." }],
    });
    const episodes = trainEpisodes(stack, "own");
    const { steps } = await runToEnd(stack, run, { deadlineMs: RUN_DEADLINE_MS });
    assert.equal(steps.length, STEPS);
    for (const { episode } of await episodes) {
      assert.equal(episode?.metrics.waved ?? episode?.reason, 1);
      assert.match(episode?.turns[0]?.promptText ?? "", /"name":"wave","description":"Waves"/);
    }
  });

  test("the example of sums trains to a checkpoint, with a smaller model", async () => {
    const example = path.join("examples", "02-arithmetic");
    const [made, kept] = [files, REPOSITORY].map((root) => path.join(root, example, "train.jsonl"));
    await cp(path.join(REPOSITORY, example), path.join(files, example), { recursive: true });
    await rm(made!);
    await promisify(execFile)(process.execPath, [path.join(files, example, "make-data.ts")]);
    assert.equal(await readFile(made!, "utf8"), await readFile(kept!, "utf8"));
    const { rollout, trainer, ...run } = parseRunFile(
      await readFile(path.join(files, example, "run.yaml"), "utf8"),
    );
    const smaller = {
      ...run,
      model: { path: path.join(folder.path, "model") },
      // This model's tokens are characters.
      rollout: { ...rollout, tasksPerStep: TASKS_PER_STEP, groupSize: GROUP_SIZE, maxContextTokens: 512 },
      trainer: { ...trainer, steps: 3 },
    };
    const { steps, evaluations, ended } = await runToEnd(stack, smaller, { deadlineMs: RUN_DEADLINE_MS });
    assert.equal(steps.length, 3);
    assert.ok(evaluations.length > 0);
    assert.notEqual(ended.checkpoint, "");
  });

  /** A short version of an example's run, with its files in the project folder. */
  async function smallerExample(example: string) {
    const own = path.join(files, example);
    await cp(path.join(REPOSITORY, example), own, { recursive: true });
    const demos = path.join(own, "data", "demos.jsonl");
    const lines = (await readFile(demos, "utf8")).split("\n").slice(0, 320);
    await writeFile(demos, `${lines.join("\n")}\n`);
    const { warmStart, rollout, trainer, ...run } = parseRunFile(
      await readFile(path.join(own, "run.yaml"), "utf8"),
    );
    return {
      ...run,
      warmStart: { ...warmStart, epochs: 2 },
      rollout: { ...rollout, tasksPerStep: TASKS_PER_STEP, groupSize: GROUP_SIZE },
      trainer: {
        ...trainer,
        steps: STEPS,
        minibatches: 1,
        optimizer: { ...trainer.optimizer, schedule: {} },
        eval: { every: 0, tasks: 4 },
      },
    };
  }

  test("the files of the example of tools are what its programs write, and it trains to a checkpoint", async () => {
    const example = path.join("examples", "03-math-tools");
    const kept = path.join(REPOSITORY, example);
    const made = path.join(folder.path, "made");
    await mkdir(made);
    for (const program of ["make-data.ts", "make-tokenizer.ts"]) {
      await promisify(execFile)(process.execPath, [path.join(kept, program), made]);
    }
    for (const name of ["train.jsonl", "test.jsonl", "demos.jsonl"]) {
      const both = [path.join(made, name), path.join(kept, "data", name)];
      const [one, other] = await Promise.all(both.map((file) => readFile(file, "utf8")));
      assert.ok(one === other, `${name} is another`);
    }
    assert.equal(
      await readFile(path.join(made, "tokenizer.json"), "utf8"),
      await readFile(path.join(kept, "tokenizer.json"), "utf8"),
    );
    const request = await smallerExample(example);
    const { steps, ended } = await runToEnd(stack, request, { deadlineMs: RUN_DEADLINE_MS });
    assert.equal(steps.length, STEPS);
    for (const { metrics } of steps) {
      assert.ok(Number(metrics["mismatch/max"]) < 1e-4, JSON.stringify(metrics));
      assert.ok(metrics.tool_calls !== undefined, "no tools");
      assert.equal(metrics["outcome/agent_failed"], 0);
    }
    assert.notEqual(ended.checkpoint, "");
  });

  test("the example of several agents trains only the agent that learns", async () => {
    const example = path.join("examples", "05-multi-agent");
    const kept = path.join(REPOSITORY, example);
    const made = path.join(folder.path, "made-team");
    await promisify(execFile)(process.execPath, [path.join(kept, "make-data.ts"), made]);
    const [one, other] = await Promise.all(
      [made, path.join(kept, "data")].map((at) => readFile(path.join(at, "demos.jsonl"), "utf8")),
    );
    assert.ok(one === other, "demos.jsonl is another");
    await smallerExample(path.join("examples", "03-math-tools"));
    const request = await smallerExample(example);
    const { runId, steps } = await runToEnd(stack, request, { deadlineMs: RUN_DEADLINE_MS });
    assert.equal(steps.length, STEPS);
    for (const { metrics } of steps) assert.equal(metrics["outcome/agent_failed"], 0);
    const rows = await stack.sql<{ sample_count: number }[]>`
      select sample_count from trainer.ledger where run_id = ${runId}`;
    assert.deepEqual(new Set(rows.map(({ sample_count: count }) => count)), new Set([1]));
  });

  test("an unknown agent is refused before anything starts, even if only a row names it", async () => {
    for (const [file, agent, key] of [
      ["rows.jsonl", { name: "wavr", modules: ["own.ts"] }, "agent.name"],
      ["rows.jsonl", { name: "waver", modules: ["none.ts"] }, "agent.modules"],
      ["named.jsonl", { name: "single_turn" }, "dataset.train.path"],
    ] as const) {
      const request = requestOf("unknown", {
        agent,
        dataset: { train: { source: "jsonl", path: file } },
        judge: [{ kind: "regex", pattern: "." }],
      });
      const sequence = await publishRequest(stack.bus, JSON.stringify(request));
      const { problems } = await refusalOf(stack.bus, sequence, ANSWER_MS);
      assert.deepEqual(
        problems.map((problem) => problem.key),
        [key],
      );
    }
  });

  test("a row without a prompt is refused before anything starts", async () => {
    const request = requestOf("bad-rows", { dataset: { train: { source: "jsonl", path: "bad.jsonl" } } });
    const sequence = await publishRequest(stack.bus, JSON.stringify(request));
    const { problems } = await refusalOf(stack.bus, sequence, ANSWER_MS);
    assert.equal(problems[0]?.key, "dataset.train.path");
    assert.match(problems[0].message, /bad\.jsonl:1 .*must have as prompt /);
  });
});

/** The episodes that a run trains on. */
function trainEpisodes({ bus }: TestStack, run = "rows"): Promise<ScoredEpisode[]> {
  return scoredEpisodes(bus, {
    run,
    count: STEPS * TASKS_PER_STEP * GROUP_SIZE,
    deadlineMs: RUN_DEADLINE_MS,
  });
}
