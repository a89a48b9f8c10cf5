/** `hone judge FILE`: a file of answers, scored by the judges of a run file, without a stack. */

import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { assemblePanel, openJudgeParts } from "@hone/judge/scoring";
import { honeCommand } from "../define.ts";
import { localEnvironment, userFolder } from "../project.ts";
import { fileEpisodes } from "../score/file-episodes.ts";
import { readJudges } from "../score/judge-list.ts";
import { scoreAll } from "../score/score-all.ts";
import { tellSummary, verdictRecord } from "../score/tell-scores.ts";

const DEFAULT_FIELD = "solution";

export const judgeCommand = honeCommand({
  name: "judge",
  description: "Score a file of answers (rows as JSON Lines, each with its answer) by a run file's judges",
  args: {
    file: { type: "positional", required: true, description: "JSON Lines", valueHint: "FILE" },
    judges: {
      type: "string",
      required: true,
      description: "Run file, or a YAML list of judges",
      valueHint: "FILE",
    },
    field: {
      type: "string",
      description: `Column of the answer; ${DEFAULT_FIELD} by default`,
      valueHint: "NAME",
    },
    out: { type: "string", description: "Writes each row with its scores, as JSON Lines", valueHint: "FILE" },
  },
  run: async ({ terminal, project, signal }, args) => {
    await using parts = openJudgeParts(project.folder, localEnvironment(project));
    const judges = await readJudges(resolve(userFolder(), args.judges));
    const panel = await assemblePanel(judges, parts);
    const lines: string[] = [];
    const episodes = fileEpisodes(resolve(userFolder(), args.file), args.field ?? DEFAULT_FIELD);
    const summary = await scoreAll(episodes, panel, signal, (row, verdict) => {
      if (args.out !== undefined) lines.push(`${JSON.stringify({ ...row, ...verdictRecord(verdict) })}\n`);
    });
    if (args.out !== undefined) await writeFile(resolve(userFolder(), args.out), lines.join(""));
    return tellSummary(terminal, summary);
  },
});
