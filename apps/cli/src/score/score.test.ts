import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { BoundKeys, CodeGate, ConfigError } from "@hone/config";
import { assemblePanel, type Verdict } from "@hone/judge/scoring";
import { type TemporaryFolder, temporaryFolder } from "@hone/testing";
import { UsageError } from "../errors.ts";
import { fileEpisodes } from "./file-episodes.ts";
import { readJudges } from "./judge-list.ts";
import { type Scorable, scoreAll } from "./score-all.ts";
import { storedRollouts } from "./stored-rollouts.ts";

const signal = new AbortController().signal;

describe("scoring without a run", () => {
  let folder: TemporaryFolder;
  before(async () => {
    folder = await temporaryFolder("score");
  });
  after(() => folder[Symbol.asyncDispose]());

  const put = async (name: string, text: string) => {
    const file = path.join(folder.path, name);
    await writeFile(file, text);
    return file;
  };
  const panel = async (text: string) =>
    assemblePanel(await readJudges(await put("judges.yaml", text)), {
      filesDir: folder.path,
      gate: new CodeGate({ filesFolder: folder.path }),
      keys: BoundKeys.none,
    });
  const score = async <Key>(episodes: AsyncIterable<Scorable<Key>>, judges: string) => {
    const verdicts: Verdict[] = [];
    const summary = await scoreAll(episodes, await panel(judges), signal, (_key, verdict) =>
      verdicts.push(verdict),
    );
    return { summary, verdicts };
  };
  const row = (solution: string, truth: string | undefined, index: number) =>
    JSON.stringify({ index, solution, reward_model: { ground_truth: truth } });

  test("a file's answers are judged with their rows, in order", async () => {
    const rows = Array.from({ length: 200 }, (_, index) =>
      row(`#### ${index}`, String(index % 2 === 0 ? index : -1), index),
    );
    const file = await put("answers.jsonl", `${rows.join("\n")}\n\n`);
    const { summary, verdicts } = await score(
      fileEpisodes(file, "solution"),
      "judge: [{ kind: gsm8k, weight: 2 }]",
    );
    assert.equal(summary.scored, 200);
    assert.equal(summary.rewardMean, 1);
    assert.deepEqual(summary.judges, [{ judge: "gsm8k", count: 200, mean: 0.5 }]);
    assert.deepEqual(
      verdicts.slice(0, 4).map((verdict) => verdict.kind === "scored" && verdict.reward),
      [2, 0, 2, 0],
    );
  });

  test("an answer that cannot be judged is counted with the reason, and not as zero", async () => {
    const file = await put("some.jsonl", [row("#### 1", "1", 0), row("#### 1", undefined, 1)].join("\n"));
    const { summary } = await score(fileEpisodes(file, "solution"), "- { kind: gsm8k }");
    assert.equal(summary.scored, 1);
    assert.equal(summary.failed, 1);
    assert.equal(summary.rewardMean, 1);
    assert.match(summary.reasons[0] ?? "", /the judge "gsm8k" failed/);
  });

  test("a line that is not a row or has no answer is reported by its number", async () => {
    const judges = "- { kind: gsm8k }";
    const broken = await put("broken.jsonl", `${row("1", "1", 0)}\n[1]\n`);
    await assert.rejects(
      score(fileEpisodes(broken, "solution"), judges),
      /line 2 of .* is not a JSON object: \[1\]/,
    );
    const silent = await put("silent.jsonl", '{"response":"1"}\n');
    await assert.rejects(
      score(fileEpisodes(silent, "solution"), judges),
      /line 1 of .* has no text in "solution"/,
    );
  });

  test("an unknown kind of judge is refused by its key", async () => {
    await assert.rejects(panel("judge: [{ kind: gsm9k }]"), (error) => {
      assert.ok(error instanceof ConfigError);
      assert.equal(error.problems[0]?.key, "judge[0].kind");
      return true;
    });
    await assert.rejects(readJudges(path.join(folder.path, "absent.yaml")), UsageError);
  });

  describe("stored rollouts", () => {
    let server: Server;
    let pageUrl: string;
    const asked: string[] = [];
    const pages: Record<string, unknown> = {
      "/api/runs/run-1": {},
      "/api/runs/run-1/rollouts?limit=200&split=train": {
        rollouts: [{ slot: "train.1.0.1", outcome: "completed", reward: 0 }],
        nextBeforeId: "7",
      },
      "/api/runs/run-1/rollouts?limit=200&split=train&before=7": {
        rollouts: [{ slot: "train.1.0.0", outcome: "infra_failed", reward: null }],
        nextBeforeId: null,
      },
    };
    for (const [index, outcome] of ["infra_failed", "completed"].entries()) {
      pages[`/api/runs/run-1/rollouts/train.1.0.${index}`] = {
        outcome,
        turns: [
          {
            index: 0,
            promptText: "2+2?",
            responseText: "so 4",
            finishReason: "stop",
            reward: null,
            info: {},
          },
        ],
        environmentReturn: 0,
        metadata: "",
        task: { id: "a", environment: "", row: { reward_model: { ground_truth: "4" } } },
      };
    }
    before(async () => {
      server = createServer((request, response) => {
        asked.push(request.url ?? "");
        const page = pages[request.url ?? ""];
        response.writeHead(page === undefined ? 404 : 200).end(JSON.stringify(page ?? {}));
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      pageUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    });
    after(() => {
      server.closeAllConnections();
      server.close();
    });

    test("are read page by page and judged", async () => {
      const stored = storedRollouts({ pageUrl, token: "t", runId: "run-1", split: "train", signal });
      const { summary } = await score(stored, "- { kind: gsm8k, method: flexible }");
      assert.equal(summary.scored, 1);
      assert.equal(summary.rewardMean, 1);
      assert.equal(summary.passed, 1);
    });

    test("of an unknown run are refused", async () => {
      const stored = storedRollouts({ pageUrl, token: "t", runId: "run-2", signal });
      await assert.rejects(score(stored, "- { kind: gsm8k }"), /no run run-2/);
    });
  });
});
