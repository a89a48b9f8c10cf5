import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { CodeGate, type JudgeConfig, parseJudges, parseYaml } from "@hone/config";
import { Outcome } from "@hone/core";
import { FinishReason } from "@hone/rl";
import { temporaryFolder } from "@hone/testing";
import { judgeParts } from "./domain/testing.ts";
import { assemblePanel, judgedRowOf, scoreEpisode, type Verdict } from "./scoring.ts";

/* Runs the examples of docs/judges.md as they stand there. */

const PAGE = path.join(import.meta.dirname, "..", "..", "..", "docs", "judges.md");
const signal = new AbortController().signal;

describe("docs/judges.md", async () => {
  const page = await readFile(PAGE, "utf8");
  const blocks = (language: string) =>
    [...page.matchAll(new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, "gs"))].map(([, text]) => text ?? "");
  const judgesOf = (text: string): readonly JudgeConfig[] => {
    const parsed = parseJudges((parseYaml(text, "judges.md") as { judge: unknown }).judge);
    assert.ok(parsed.kind === "judges", JSON.stringify(parsed));
    return parsed.judges;
  };
  const row = JSON.parse(blocks("json")[0] ?? "") as Record<string, unknown>;
  const verdictOn = async (
    judges: readonly JudgeConfig[],
    solution: string,
    filesDir = ".",
  ): Promise<Verdict> =>
    scoreEpisode(
      {
        outcome: Outcome.completed,
        environmentReturn: 0,
        roleRewards: {},
        turns: [{ promptText: "", responseText: solution, finishReason: FinishReason.stop, info: {} }],
        row: judgedRowOf(row),
        metadata: { answer: "72" },
      },
      await assemblePanel(
        judges,
        judgeParts({ filesDir, gate: new CodeGate({ filesFolder: filesDir, areModulesAllowed: true }) }),
      ),
      { signal },
    );

  test("its first list of judges scores its row", async () => {
    const judges = judgesOf(blocks("yaml")[0] ?? "");
    const verdict = await verdictOn(judges, "<think>6 * 12</think> \\boxed{72}");
    assert.ok(verdict.kind === "scored");
    assert.equal(verdict.reward, 1.1);
  });

  test("its function scores the row and gives its metrics", async () => {
    await using folder = await temporaryFolder("judges-page");
    // Written to a file like a user's, which need not pass the strict type check.
    await writeFile(path.join(folder.path, "score.ts"), blocks("ts")[0] ?? "");
    const verdict = await verdictOn(judgesOf(blocks("yaml")[1] ?? ""), "It is 72", folder.path);
    assert.ok(verdict.kind === "scored");
    assert.equal(verdict.reward, 1);
    assert.deepEqual(verdict.scores[0]?.metrics, { length: 8, answered: 1 });
  });
});
