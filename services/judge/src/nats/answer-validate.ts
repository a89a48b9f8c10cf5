/** Answers `hone.v1.judge.validate`: whether every judge that a run names is known here and can be made. */

import { create } from "@bufbuild/protobuf";
import { type ConfigProblem, type JudgeConfig, parseJudges } from "@hone/config";
import { describeError } from "@hone/core";
import {
  ProblemSchema,
  type ValidateReply,
  ValidateReplySchema,
  type ValidateRequest,
} from "@hone/proto-gen/run";
import type { JudgeParts } from "../domain/judge-parts.ts";
import { assemblePanel } from "../domain/panel.ts";
import { judgesIn } from "./decode-judges.ts";

/** Never rejects. */
export async function answerValidate(request: ValidateRequest, parts: JudgeParts): Promise<ValidateReply> {
  const parsed = parseJudges(judgesIn(request.configJson));
  const problems =
    parsed.kind === "problems"
      ? parsed.problems
      : (await Promise.all(parsed.judges.map((config, index) => problemOf(config, index, parts)))).flat();
  return create(ValidateReplySchema, {
    service: "judge",
    problems: problems.map(({ key, value, allowed, message }) =>
      create(ProblemSchema, { key, valueJson: JSON.stringify(value ?? null), allowed, message }),
    ),
  });
}

async function problemOf(config: JudgeConfig, index: number, parts: JudgeParts): Promise<ConfigProblem[]> {
  try {
    await assemblePanel([config], parts);
    return [];
  } catch (error) {
    const key = `judge[${index}]`;
    const allowed = "a judge that can be made";
    return [{ key, value: config, allowed, message: `\`${key}\` cannot be used: ${describeError(error)}` }];
  }
}
