/** Answers `hone.v1.judge.validate`: whether every judge that a run names is known here. */

import { create } from "@bufbuild/protobuf";
import { parseJson } from "@hone/core";
import {
  ProblemSchema,
  type ValidateReply,
  ValidateReplySchema,
  type ValidateRequest,
} from "@hone/proto-gen/run";
import { decodeJudges } from "./decode-judges.ts";

export function answerValidate(request: ValidateRequest): ValidateReply {
  const decoded = decodeJudges(judgesOf(request.configJson));
  const problems = decoded.kind === "judges" ? [] : decoded.problems;
  return create(ValidateReplySchema, {
    service: "judge",
    problems: problems.map(({ path, value, allowed, message }) =>
      create(ProblemSchema, {
        key: `judge${path}`,
        valueJson: JSON.stringify(value ?? null),
        allowed,
        message,
      }),
    ),
  });
}

/** What stands under `judge`; undefined where the text is no run file. */
function judgesOf(configJson: string): unknown {
  try {
    const config: unknown = parseJson(configJson);
    return typeof config === "object" && config !== null ? Reflect.get(config, "judge") : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
