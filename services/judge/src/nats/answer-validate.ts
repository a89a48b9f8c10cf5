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
import { judgeListsIn } from "./decode-judges.ts";

/** Never rejects. */
export async function answerValidate(request: ValidateRequest, parts: JudgeParts): Promise<ValidateReply> {
  const lists = await Promise.all(judgeListsIn(request.configJson).map((list) => problemsOf(list, parts)));
  const problems = lists.flat();
  return create(ValidateReplySchema, {
    service: "judge",
    problems: problems.map(({ key, value, allowed, message }) =>
      create(ProblemSchema, { key, valueJson: JSON.stringify(value ?? null), allowed, message }),
    ),
  });
}

async function problemsOf(
  { key, value }: { readonly key: string; readonly value: unknown },
  parts: JudgeParts,
): Promise<ConfigProblem[]> {
  const parsed = parseJudges(value, key);
  if (parsed.kind === "problems") return [...parsed.problems];
  const problems = parsed.judges.map((config, index) => problemOf(config, `${key}[${index}]`, parts));
  return (await Promise.all(problems)).flat();
}

async function problemOf(config: JudgeConfig, key: string, parts: JudgeParts): Promise<ConfigProblem[]> {
  try {
    await assemblePanel([config], parts);
    return [];
  } catch (error) {
    const allowed = "a judge that can be made";
    return [{ key, value: config, allowed, message: `\`${key}\` cannot be used: ${describeError(error)}` }];
  }
}
