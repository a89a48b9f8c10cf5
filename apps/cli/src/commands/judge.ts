/** `hone judge FILE`: scores a file of answers with the judges of a run file, without a stack. */

import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { assemblePanel, openJudgeParts } from "@hone/judge/scoring";
import { honeCommand } from "../define.ts";
import { localEnvironment, userFolder } from "../project.ts";
import { fileEpisodes } from "../score/file-episodes.ts";
import { readJudges } from "../score/judge-list.ts";
import { printSummary, verdictRecord } from "../score/print-scores.ts";
import { scoreAll } from "../score/score-all.ts";

const DEFAULT_FIELD = "solution";

export const judgeCommand = honeCommand({
  name: "judge",
  description: "Score a file of answers with a run file's judges; needs no stack",
  args: {
    file: {
      type: "positional",
      required: true,
      description: "JSON Lines: one dataset row per line, with its answer",
      valueHint: "FILE",
    },
    judges: {
      type: "string",
      required: true,
      description: "Run file, or a YAML list of judges",
      valueHint: "FILE",
    },
    field: {
      type: "string",
      description: `Column that holds the answer; ${DEFAULT_FIELD} by default`,
      valueHint: "NAME",
    },
    out: {
      type: "string",
      description: "Write each row with its scores to this file, as JSON Lines",
      valueHint: "FILE",
    },
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
    return printSummary(terminal, summary);
  },
});
