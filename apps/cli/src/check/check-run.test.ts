import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type TestProject, testProject } from "../debug/testing.ts";
import { loadRunFile } from "../run/load-run-file.ts";
import { type CheckedPart, checkRun } from "./check-run.ts";

/* `hone validate` without a stack: each part is checked by the code of the service that it belongs to. */

describe("checkRun()", () => {
  let own: TestProject;
  before(async () => {
    own = await testProject();
    await mkdir(join(own.project.folder, "empty"));
    await own.writeFile("no-prompt.jsonl", '{"prompt": "1+1?"}\n{"question": "2+2?"}\n');
    await own.writeFile("no-truth.jsonl", '{"prompt": "1+1?", "reward_model": {"style": "rule"}}\n');
    await own.writeFile("bad-agent.jsonl", '{"prompt": "1+1?", "agent_name": "addr"}\n');
    await own.writeFile("tools.yaml", "tools: [{ class_name: calculatr }]");
    await own.writeFile("no-score.ts", "export const computeScores = 1;");
  });
  after(() => own[Symbol.asyncDispose]());

  const check = async (runFile: string): Promise<CheckedPart[]> => {
    const { project } = own;
    const loaded = await loadRunFile(runFile, project.folder);
    return checkRun(loaded, { project, signal: new AbortController().signal });
  };

  test("lists the parts that it checked, and finds nothing wrong with a valid file", async () => {
    const parts = await check(own.runFile);
    assert.deepEqual(
      parts.map(({ name, problems, skipped }) => [name, problems, skipped]),
      ["model", "memory", "engine", "dataset", "agent", "judges"].map((name) => [name, [], undefined]),
    );
    const textOf = (wanted: string) => parts.find(({ name }) => name === wanted)?.text ?? "";
    assert.match(textOf("model"), /made from scratch: qwen3, 1 layers of 16/);
    assert.match(textOf("memory"), /predicted to take \d+ of \d+ MiB/);
    assert.match(textOf("dataset"), /train: 2 tasks, rows up to rows\.jsonl:2/);
    assert.match(textOf("agent"), /^adder with agent\.ts/);
  });

  const rows = (path: string) => ({ dataset: { train: { source: "jsonl", path } } });
  const agent = (config: object, name = "adder") => ({ agent: { name, modules: ["agent.ts"], config } });
  for (const [what, part, changes, problem] of [
    [
      "a row that lacks a column its agent needs",
      "agent",
      rows("no-prompt.jsonl"),
      /no-prompt\.jsonl:2: `prompt`/,
    ],
    [
      "a row that lacks a column a judge needs",
      "dataset",
      { ...rows("no-truth.jsonl"), judge: [{ kind: "exact" }] },
      /no-truth\.jsonl:1 cannot be used: .*reward_model\.ground_truth/,
    ],
    [
      "a row whose agent_name is no agent",
      "agent",
      rows("bad-agent.jsonl"),
      /bad-agent\.jsonl:1.*did you mean "adder"/,
    ],
    ["a data file that does not exist", "dataset", rows("none.jsonl"), /dataset.*"none\.jsonl"/],
    [
      "an unknown key in the agent's configuration",
      "agent",
      agent({ tols: [] }),
      /agent\.config\.tols.*did you mean "tools"/,
    ],
    ["a tool that does not exist", "agent", agent({ tools: ["ad"] }), /did you mean "add"/],
    [
      "a file of tools with an unknown class_name",
      "agent",
      agent({ toolFile: "tools.yaml" }, "tool_agent"),
      /calculatr/,
    ],
    [
      "a module that does not exist",
      "agent",
      { agent: { name: "adder", modules: ["other.ts"] } },
      /agent\.modules.*other\.ts|other\.ts.*agent\.modules/,
    ],
    [
      "an environment that does not exist",
      "agent",
      {
        dataset: { train: { source: "environment", environment: "coins", seeds: { from: 0, to: 9 } } },
        agent: { name: "tosser", modules: ["agent.ts"] },
        judge: [{ kind: "environment" }],
      },
      /dataset\.train\.environment.*did you mean "coin"/,
    ],
    [
      "a judge's module that lacks the function computeScore",
      "judges",
      { judge: [{ kind: "module", path: "no-score.ts" }] },
      /judge\[0\].*no-score\.ts.*computeScore/,
    ],
    ["a folder that holds no model", "model", { model: { path: "empty" } }, /model\.path.*empty/],
    [
      "PyTorch workers where there is no PyTorch",
      "workers",
      {
        trainer: {
          engine: { kind: "fsdp2" },
          steps: 1,
          optimizer: { kind: "adamw", learningRate: 0.1 },
        },
      },
      /trainer\.engine\.kind.*HONE_TRAINER_PYTHON/,
    ],
  ] as const) {
    test(`reports ${what}`, async () => {
      const parts = await check(await own.writeRun("changed.json", changes));
      const found = parts.filter(({ problems }) => problems.length > 0);
      assert.deepEqual(
        found.map(({ name }) => name),
        [part],
      );
      assert.match(found[0]?.problems.join("\n") ?? "", problem);
    });
  }

  test("fetches no model, and says that one missing from the hub's cache was not checked", async () => {
    const cache = process.env.HF_HUB_CACHE;
    process.env.HF_HUB_CACHE = join(own.project.folder, "cache");
    try {
      const [model] = await check(await own.writeRun("hub.json", { model: { path: "someone/something" } }));
      assert.match(model?.skipped ?? "", /someone\/something .* the run fetches it/);
    } finally {
      if (cache === undefined) delete process.env.HF_HUB_CACHE;
      else process.env.HF_HUB_CACHE = cache;
    }
  });
});
