/** Answers `hone.v1.inference-gateway.validate` with whether this engine can generate for a run. */

import { create } from "@bufbuild/protobuf";
import { ConfigError, type ConfigProblem, type RunConfig, resolveRunConfig } from "@hone/config";
import { parseJson } from "@hone/core";
import type { ModelConfig } from "@hone/nn";
import {
  ProblemSchema,
  type ValidateReply,
  ValidateReplySchema,
  type ValidateRequest,
} from "@hone/proto-gen/run";

/** Returns what an engine cannot do of a run; undefined while that is not known. */
export type RunCheck = (
  run: RunConfig,
  model: ModelConfig | undefined,
) => readonly ConfigProblem[] | undefined;

/** @returns undefined while that is not known; the caller asks again. */
export function answerValidate(request: ValidateRequest, check: RunCheck): ValidateReply | undefined {
  const problems = problemsOf(request, check);
  if (problems === undefined) return undefined;
  return create(ValidateReplySchema, {
    service: "inference-gateway",
    problems: problems.map(({ key, value, allowed, message }) =>
      create(ProblemSchema, { key, valueJson: JSON.stringify(value ?? null), allowed, message }),
    ),
  });
}

function problemsOf(
  { configJson, modelConfigJson }: ValidateRequest,
  check: RunCheck,
): readonly ConfigProblem[] | undefined {
  try {
    const model = modelConfigJson === "" ? undefined : (JSON.parse(modelConfigJson) as ModelConfig);
    return check(resolveRunConfig(parseJson(configJson)), model);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    if (!(error instanceof SyntaxError)) throw error;
    const allowed = "the JSON of a resolved run file";
    return [
      {
        key: "",
        value: configJson.slice(0, 100),
        allowed,
        message: `The run cannot be read; it must be ${allowed}`,
      },
    ];
  }
}
