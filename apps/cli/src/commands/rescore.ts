/** `hone rescore RUN`: a run's stored rollouts, judged again by other judges. Nothing of the run changes. */

import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { assemblePanel, openJudgeParts } from "@hone/judge/scoring";
import { honeCommand } from "../define.ts";
import { localEnvironment, userFolder } from "../project.ts";
import { readJudges } from "../score/judge-list.ts";
import { scoreAll } from "../score/score-all.ts";
import { storedRollouts } from "../score/stored-rollouts.ts";
import { tellSummary, verdictRecord } from "../score/tell-scores.ts";
import { requireStack } from "../stack/use-stack.ts";

export const rescoreCommand = honeCommand({
  name: "rescore",
  description: "Score a run's stored rollouts again, by other judges",
  args: {
    run: { type: "positional", required: true, description: "Id of the run", valueHint: "RUN" },
    judges: {
      type: "string",
      required: true,
      description: "Run file, or a YAML list of judges",
      valueHint: "FILE",
    },
    split: { type: "string", description: "train, eval or warm; all by default", valueHint: "SPLIT" },
    step: {
      type: "string",
      description: "Step, or version of an evaluation; all by default",
      valueHint: "K",
    },
    out: {
      type: "string",
      description: "Writes each rollout's old and new reward, as JSON Lines",
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
      terminal.line(`before: reward mean ${mean.toFixed(4)} of ${before.length} rollouts`);
    return tellSummary(terminal, summary);
  },
});
