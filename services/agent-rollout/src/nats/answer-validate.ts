/** Answers `hone.v1.agent-rollout.validate`: whether the agent, environments and script of a run are known and configured correctly. */

import { create } from "@bufbuild/protobuf";
import { ConfigError, type RunConfig, resolveRunConfig } from "@hone/config";
import { InvalidInputError, parseJson } from "@hone/core";
import {
  ProblemSchema,
  type ValidateReply,
  ValidateReplySchema,
  type ValidateRequest,
} from "@hone/proto-gen/run";
import { checkAgents, type RowsOfSplit } from "../domain/check-agents.ts";
import type { Endpoints } from "../domain/endpoints.ts";
import type { RolloutDependencies } from "../domain/run-rollout.ts";
import { type RunParts, type RunProblem, validateRun } from "../domain/validate-run.ts";

/** What validation uses. */
export interface ValidateParts
  extends Pick<RolloutDependencies, "agents" | "modules" | "agentConfigAt" | "endpoints"> {
  /** Reads the first rows of the run's datasets. */
  readonly rowsOf: (run: RunConfig) => Promise<readonly RowsOfSplit[]>;
}

export async function answerValidate(request: ValidateRequest, parts: ValidateParts): Promise<ValidateReply> {
  const problems = await problemsOf(request.configJson, parts);
  return create(ValidateReplySchema, {
    service: "agent-rollout",
    problems: problems.map(({ key, value, allowed, message }) =>
      create(ProblemSchema, { key, valueJson: JSON.stringify(value ?? null), allowed, message }),
    ),
  });
}

async function problemsOf(configJson: string, parts: ValidateParts): Promise<readonly RunProblem[]> {
  try {
    const run = resolveRunConfig(parseJson(configJson));
    const { agent } = run;
    const modules = await parts.modules.load(agent.modules ?? []);
    const problems = [
      ...validateRun({ ...partsOf(run), own: modules.exports }),
      ...endpointProblems(run, parts.endpoints),
    ];
    if (problems.length > 0) return problems;
    const chosen = { name: agent.name, configJson: agent.config && JSON.stringify(agent.config) };
    return await checkAgents(chosen, await parts.rowsOf(run), { ...parts, modules });
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    if (error instanceof InvalidInputError) {
      return [{ key: error.path, value: undefined, allowed: error.allowed, message: error.message }];
    }
    if (!(error instanceof SyntaxError)) throw error;
    return [
      {
        key: "",
        value: undefined,
        allowed: "JSON",
        message: `the run file is not JSON: ${error.message}`,
      },
    ];
  }
}

function endpointProblems({ trainer }: RunConfig, { keys }: Endpoints): RunProblem[] {
  const { keyVariable, baseUrl = "" } = trainer.eval.endpoint ?? {};
  if (keyVariable === undefined) return [];
  const key = "trainer.eval.endpoint.keyVariable";
  try {
    keys.keyFor(keyVariable, baseUrl, key);
    return [];
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    return [{ key, value: keyVariable, allowed: error.allowed, message: error.message }];
  }
}

function partsOf(run: RunConfig): RunParts {
  const { agent, warmStart, dataset, model } = run;
  // The trainer checks the tokenizer of a pretrained model, as it has the files.
  const tokenizer = "init" in model ? model.init.tokenizer : "";
  return {
    agent: {
      name: agent.name,
      ...(agent.config !== undefined && { config: agent.config }),
      ...(agent.configPath !== undefined && { configPath: agent.configPath }),
    },
    ...(warmStart?.policy !== undefined && { warmStart: { policy: warmStart.policy } }),
    ...(typeof tokenizer !== "string" && { tokenizerFiles: tokenizer.files }),
    environments: (["train", "eval"] as const).flatMap((split) => {
      const source = dataset[split];
      return source?.source === "environment"
        ? [{ key: `dataset.${split}`, name: source.environment, config: source.config }]
        : [];
    }),
  };
}
