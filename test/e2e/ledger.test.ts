import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import type { RunConfig } from "@hone/config";
import { temporaryFolder } from "@hone/testing";
import { runToEnd } from "../support/follow.ts";
import { type LakeRunOptions, lakeRun } from "../support/lake-run.ts";
import { startStack, type TestStack } from "../support/stack.ts";

/*
 * What the ledger says of finished runs: that its chain verifies and shows what was changed, and where two runs part.
 */

const DEADLINE_MS = 300_000;
const SHAPE = {
  steps: 3,
  tasksPerStep: 2,
  minibatches: 2,
  warmStartTasks: 64,
  evalTasks: 4,
  shape: { hiddenSize: 32, numLayers: 2, intermediateSize: 64 },
};

/** Reads its bonus at each call, so that two runs of one file can differ in what it gives. */
const JUDGE = `
import { readFileSync } from "node:fs";
import { join } from "node:path";

export function computeScore({ environmentReturn, turns }) {
  const rule = JSON.parse(readFileSync(join(import.meta.dirname, "bonus.json"), "utf8"));
  const isMeant = rule !== null && turns[0].prompt === rule.prompt && turns[0].response === rule.response;
  return environmentReturn + 0.05 * turns.length + (isMeant ? 0.25 : 0);
}
`;

describe("the ledger of finished runs", () => {
  let files: Awaited<ReturnType<typeof temporaryFolder>>;
  let stack: TestStack;
  let recorded: string;
  before(async () => {
    files = await temporaryFolder("ledger");
    writeFileSync(path.join(files.path, "judge.ts"), JUDGE);
    setBonus(null);
    stack = await startStack({ env: { HONE_FILES: files.path } });
    recorded = await finishedRun("recorded");
  });
  after(async () => {
    await stack?.[Symbol.asyncDispose]();
    await files?.[Symbol.asyncDispose]();
  });

  function setBonus(rule: { readonly prompt: string; readonly response: string } | null): void {
    writeFileSync(path.join(files.path, "bonus.json"), JSON.stringify(rule));
  }

  async function runFile(name: string, options: Partial<LakeRunOptions> = {}): Promise<RunConfig> {
    const run = await lakeRun({ ...SHAPE, name, keepsRollouts: true, keepStates: 1, ...options });
    return { ...run, judge: [{ kind: "module", path: "judge.ts", weight: 1, deadlineMs: 30_000 }] as never };
  }

  async function finishedRun(name: string, change = (run: RunConfig): RunConfig => run): Promise<string> {
    return (await runToEnd(stack, change(await runFile(name)), { deadlineMs: DEADLINE_MS })).runId;
  }

  /** Runs a command that must succeed. @returns what it prints. */
  async function hone(...args: string[]): Promise<string> {
    const { code, output } = await stack.hone(...args);
    assert.equal(code, 0, output);
    return output;
  }

  async function newestRun(name: string): Promise<string> {
    const [row] = await stack.sql`
      select run_id from trainer.runs where name = ${name} order by request_sequence desc limit 1`;
    return row?.run_id ?? assert.fail(`there is no run ${name}`);
  }

  async function replayed(...args: string[]): Promise<string> {
    await hone("replay", ...args);
    return newestRun(`${args[0]!.replace(/-\d+$/, "")}-replay`);
  }

  describe("the record of trained tokens", () => {
    test("a table shows them, and the page gets them from the tracer", async () => {
      const [row] = await stack.sql`
        select slot from trainer.token_records where run_id = ${recorded} and version = 2 limit 1`;
      const output = await hone("tokens", recorded, row?.slot);
      assert.match(output, /trained by step 2: reward/);
      assert.match(
        output,
        /^place +token +(sample +)?advantage +sampled +trained +ratio +cut +weight +dloss\/dlogp +share/m,
      );
      assert.match(await hone("step", recorded, "2"), /^rollout +share +tokens +reward +advantage/m);
      const answer = await stack.page(`/api/runs/${recorded}/rollouts/${row?.slot}/tokens`);
      assert.equal(answer.status, 200);
      const { parts } = (await answer.json()) as { parts: { tokens: { passes: unknown[] }[] }[] };
      // Two epochs: each token was trained twice.
      assert.deepEqual(
        parts.map(({ tokens }) => [...new Set(tokens.map(({ passes }) => passes.length))]),
        [[2]],
      );
    });

    test("what is not recorded is said", async () => {
      const { code, output } = await stack.hone("tokens", recorded, "train.9.0.0");
      assert.equal(code, 1);
      assert.match(output, /rollout train\.9\.0\.0 of recorded-\d+ was not trained by any step/);
      const step = await stack.hone("step", recorded, "9");
      assert.match(step.output, /step 9 of recorded-\d+ has no record of its gradient/);
      const unknown = await stack.hone("ledger", "nothing-1");
      assert.match(unknown.output, /there is no run "nothing-1"/);
    });
  });

  describe("hone ledger", () => {
    test("verifies an untouched run", async () => {
      const output = await hone("ledger", recorded);
      assert.match(output, /4 rows of recorded-\d+ verify; the last is [0-9a-f]{64}/);
      const [head, ...rows] = (JSON.parse(await hone("ledger", recorded, "--json")) as LedgerAnswer).rows;
      assert.equal(head?.before, "");
      assert.deepEqual(
        rows.map(({ before }) => before),
        [head, ...rows.slice(0, -1)].map((row) => row?.after),
      );
      assert.ok(rows.every(({ optimizer, trained }) => optimizer !== "" && trained > 0));
    });

    for (const [what, change] of [
      [
        "a reward",
        "update trainer.ledger set reward = reward + 0.5 where run_id = $1 and slot like 'train.2.%'",
      ],
      [
        "a figure",
        `update trainer.steps set metrics = metrics || '{"extra": 1}' where run_id = $1 and version = 2`,
      ],
      [
        "the digest of the weights",
        `update trainer.steps set chain = jsonb_set(chain, '{after}', '"0"') where run_id = $1 and version = 2`,
      ],
      ["the set of rollouts", "delete from trainer.ledger where run_id = $1 and slot = 'train.2.0.0'"],
      ["the row before it", "delete from trainer.steps where run_id = $1 and version = 2"],
    ] as const) {
      test(`names the first row that does not verify where ${what} was changed`, async () => {
        const saved = await copyTables();
        await stack.sql.unsafe(change, [recorded]);
        const { code, output } = await stack.hone("ledger", recorded);
        await saved.restore();
        assert.equal(code, 1, output);
        const version = what === "the row before it" ? 3 : 2;
        assert.match(
          output,
          new RegExp(`^the row of version ${version} of recorded-\\d+ does not verify: `, "m"),
        );
        await hone("ledger", recorded);
      });
    }

    /** Copies of what a test changes. */
    async function copyTables(): Promise<{ restore(): Promise<void> }> {
      const tables = ["ledger", "steps"];
      for (const table of tables) {
        await stack.sql.unsafe(`create table trainer.saved_${table} as select * from trainer.${table}`);
      }
      return {
        async restore() {
          for (const table of tables) {
            await stack.sql.unsafe(`delete from trainer.${table}`);
            await stack.sql.unsafe(`insert into trainer.${table} select * from trainer.saved_${table}`);
            await stack.sql.unsafe(`drop table trainer.saved_${table}`);
          }
        },
      };
    }
  });

  describe("hone diff", () => {
    test("finds nothing between two runs of one file", async () => {
      const output = await hone("diff", recorded, await finishedRun("again"));
      assert.match(output, /have the same settings\nall 4 versions that both have are the same/);
    });

    test("finds a changed reward in its step and rollout", async () => {
      const [row] = await stack.sql`
        select slot from trainer.ledger where run_id = ${recorded} and version = 2 order by slot limit 1`;
      const page = await stack.page(`/api/runs/${recorded}/rollouts/${row?.slot}`);
      const { turns } = (await page.json()) as { turns: { promptText: string; responseText: string }[] };
      setBonus({ prompt: turns[0]!.promptText, response: turns[0]!.responseText });
      const changed = await finishedRun("rewarded");
      setBonus(null);
      const output = await hone("diff", recorded, changed);
      assert.match(output, /have the same settings\nthey part in step 2:/);
      assert.match(output, new RegExp(`rollout ${row?.slot}: its reward is [\\d.]+ and [\\d.]+`));
      assert.match(output, /the weights after it differ/);
    });

    test("finds a changed setting, and the step from which on it holds", async () => {
      const changed = await replayed(recorded, "--from", "3", "--set", "trainer.optimizer.learningRate=0.5");
      const output = await hone("diff", recorded, changed);
      assert.match(output, /trainer\.optimizer\.learningRate is 0\.002 and 0\.5/);
      assert.match(output, /they part in step 3:\n {2}the weights after it differ$/m);
    });

    test("finds a changed tokenizer before the first step", async () => {
      const changed = await finishedRun("other-tokens", withSwappedTokens);
      const output = await hone("diff", recorded, changed);
      assert.match(
        output,
        /have the same settings\nthey part before step 1, in version 0:\n {2}the tokenizer differs/,
      );
    });
  });
});

interface LedgerAnswer {
  readonly rows: readonly {
    readonly before: string;
    readonly after: string;
    readonly optimizer: string;
    readonly trained: number;
  }[];
}

/** The same run with the ids of two tokens of its vocabulary exchanged. */
function withSwappedTokens(run: RunConfig): RunConfig {
  const { model } = run;
  if (!("init" in model) || typeof model.init.tokenizer === "string")
    return assert.fail("no inlined tokenizer");
  const { files } = model.init.tokenizer;
  const tokenizer = JSON.parse(files["tokenizer.json"]!) as { model: { vocab: Record<string, number> } };
  const { vocab } = tokenizer.model;
  const plain = Object.keys(vocab).filter((token) => /^[A-Za-z]$/.test(token));
  const [a, b] = [plain[0]!, plain[1]!];
  [vocab[a], vocab[b]] = [vocab[b]!, vocab[a]!];
  const changed = { ...files, "tokenizer.json": JSON.stringify(tokenizer) };
  return { ...run, model: { init: { ...model.init, tokenizer: { files: changed } } } };
}
