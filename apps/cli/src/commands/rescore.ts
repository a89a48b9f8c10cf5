/** `hone rescore RUN`: scores a run's stored rollouts with other judges. The run itself does not change. */

import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { assemblePanel, openJudgeParts } from "@hone/judge/scoring";
import { honeCommand } from "../define.ts";
import { localEnvironment, userFolder } from "../project.ts";
import { readJudges } from "../score/judge-list.ts";
import { printSummary, verdictRecord } from "../score/print-scores.ts";
import { scoreAll } from "../score/score-all.ts";
import { storedRollouts } from "../score/stored-rollouts.ts";
import { requireStack } from "../stack/use-stack.ts";

export const rescoreCommand = honeCommand({
  name: "rescore",
  description: "Score a run's stored rollouts again with other judges",
  args: {
    run: { type: "positional", required: true, description: "Id of the run", valueHint: "RUN" },
    judges: {
      type: "string",
      required: true,
      description: "Run file, or a YAML list of judges",
      valueHint: "FILE",
    },
    split: { type: "string", description: "Only this split: train, eval or warm", valueHint: "SPLIT" },
    step: {
      type: "string",
      description: "Only this step, or this version of an evaluation",
      valueHint: "K",
    },
    out: {
      type: "string",
      description: "Write each rollout's old and new reward to this file, as JSON Lines",
      valueHint: "FILE",
    },
  },
  run: async (session, args) => {
    const { terminal, project, signal } = session;
    const { pageUrl, token } = requireStack(session);
    const judges = await readJudges(resolve(userFolder(), args.judges));
    await using parts = openJudgeParts(project.folder, localEnvironment(project));
    const panel = await assemblePanel(judges, parts);
    const { run: runId, split, step } = args;
    const stored = storedRollouts({ pageUrl, token, runId, split, step, signal });
    const before: number[] = [];
    const lines: string[] = [];
    const summary = await scoreAll(stored, panel, signal, ({ slot, reward }, verdict) => {
      if (reward !== null) before.push(reward);
      if (args.out !== undefined) {
        lines.push(`${JSON.stringify({ slot, rewardBefore: reward, ...verdictRecord(verdict) })}\n`);
      }
    });
    if (args.out !== undefined) await writeFile(resolve(userFolder(), args.out), lines.join(""));
    const mean = before.reduce((sum, each) => sum + each, 0) / before.length;
    if (before.length > 0)
      terminal.line(`before: reward mean ${mean.toFixed(4)} over ${before.length} rollouts`);
    return printSummary(terminal, summary);
  },
});
