/** Episodes and judges for tests. */

import assert from "node:assert/strict";
import { BoundKeys, CodeGate, parseJudges } from "@hone/config";
import { Outcome } from "@hone/core";
import { FinishReason } from "@hone/rl";
import type { Judgement } from "./judge.ts";
import type { JudgeParts } from "./judge-parts.ts";
import type { JudgedEpisode } from "./judged-episode.ts";
import { assemblePanel } from "./panel.ts";

/** An episode with these answers, one in each turn. */
export function answered(responses: string | readonly string[], groundTruth?: unknown): JudgedEpisode {
  const texts = typeof responses === "string" ? [responses] : responses;
  return {
    outcome: Outcome.completed,
    environmentReturn: 0,
    roleRewards: {},
    turns: texts.map((responseText) => ({
      promptText: "2+2?",
      responseText,
      finishReason: FinishReason.stop,
      info: {},
    })),
    row: { dataSource: "sums", groundTruth, extraInfo: { index: 3 } },
    metadata: { answer: "four" },
  };
}

/** What judges need, with defaults without keys and modules. */
export function judgeParts(parts: Partial<JudgeParts> = {}): JudgeParts {
  const { filesDir = "." } = parts;
  return { filesDir, gate: new CodeGate({ filesFolder: filesDir }), keys: BoundKeys.none, ...parts };
}

/** Makes a judge from its configuration and judges an episode with it. */
export async function judgementOf(
  judge: object,
  episode: JudgedEpisode,
  parts: JudgeParts = judgeParts(),
): Promise<Judgement> {
  const parsed = parseJudges([judge]);
  assert.ok(parsed.kind === "judges", JSON.stringify(parsed));
  const [member] = (await assemblePanel(parsed.judges, parts)).judges;
  assert.ok(member !== undefined);
  const word = await member.judge(episode, { signal: new AbortController().signal });
  return typeof word === "number" ? { value: word } : word;
}
