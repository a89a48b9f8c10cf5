/** Answers `hone.v1.inference-gateway.validate`: whether this engine can generate for a run. */

import { create } from "@bufbuild/protobuf";
import { ConfigError, type ConfigProblem, resolveRunConfig } from "@hone/config";
import { parseJson } from "@hone/core";
import type { ModelConfig } from "@hone/nn";
import {
  ProblemSchema,
  type ValidateReply,
  ValidateReplySchema,
  type ValidateRequest,
} from "@hone/proto-gen/run";
import { checkRun } from "../domain/check-run.ts";

export function answerValidate(request: ValidateRequest, maxCacheBytes: number): ValidateReply {
  return create(ValidateReplySchema, {
    service: "inference-gateway",
    problems: problemsOf(request, maxCacheBytes).map(({ key, value, allowed, message }) =>
      create(ProblemSchema, { key, valueJson: JSON.stringify(value ?? null), allowed, message }),
    ),
  });
}

function problemsOf(
  { configJson, modelConfigJson }: ValidateRequest,
  maxCacheBytes: number,
): readonly ConfigProblem[] {
  try {
    const model = modelConfigJson === "" ? undefined : (JSON.parse(modelConfigJson) as ModelConfig);
    return checkRun(resolveRunConfig(parseJson(configJson)), model, maxCacheBytes);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    if (!(error instanceof SyntaxError)) throw error;
    const allowed = "the JSON of a resolved run file";
    return [
      {
        key: "",
        value: configJson.slice(0, 100),
        allowed,
        message: `Cannot read the run as it must be ${allowed}`,
      },
    ];
  }
}
