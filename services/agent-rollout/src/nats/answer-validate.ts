/** Answers `hone.v1.agent-rollout.validate`: whether the agent, environments and script of a run are known and configured correctly. */

import { create } from "@bufbuild/protobuf";
import {
  agentOfPart,
  ConfigError,
  environmentOfTasks,
  modulesOf,
  pathText,
  type RunConfig,
  resolveRunConfig,
  taskPartsOf,
} from "@hone/config";
import { InvalidInputError, parseJson } from "@hone/core";
import {
  ProblemSchema,
  type ValidateReply,
  ValidateReplySchema,
  type ValidateRequest,
} from "@hone/proto-gen/run";
import { checkAgents, type RowsOfSplit } from "../domain/admission/check-agents.ts";
import {
  type RunParts,
  type RunProblem,
  validateRun,
  type WrittenAgent,
} from "../domain/admission/validate-run.ts";
import type { ChosenAgent } from "../domain/agent-choice.ts";
import type { Endpoints } from "../domain/endpoints.ts";
import type { RolloutDependencies } from "../domain/run-rollout.ts";

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
    const modules = await parts.modules.load(modulesOf(run));
    const problems = [
      ...validateRun({ ...partsOf(run), own: modules.exports, context: { keys: parts.endpoints.keys } }),
      ...endpointProblems(run, parts.endpoints),
    ];
    if (problems.length > 0) return problems;
    const rows = await parts.rowsOf(run);
    const checks = [["agent", agent] as const, ...ownAgentsOf(run)].map(([key, own]) => {
      const ownRows = rows.filter(({ part = "" }) => agentOfPart(run, part) === own);
      return checkAgents(key, chosenOf(own), ownRows, { ...parts, modules });
    });
    return (await Promise.all(checks)).flat();
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

function chosenOf({ name, config }: RunConfig["agent"]): ChosenAgent {
  return { name, configJson: config && JSON.stringify(config) };
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
  const { agent, warmStart, model } = run;
  const parts = taskPartsOf(run);
  const rows = parts.find(({ tasks }) => environmentOfTasks(tasks) === undefined);
  const agentKeys = new Map(ownAgentsOf(run).map(([key, own]) => [own, key]));
  // The trainer checks the tokenizer of a pretrained model, as it has the files.
  const tokenizer = "init" in model ? model.init.tokenizer : "";
  return {
    agent: writtenAgent(agent),
    partAgents: ownAgentsOf(run).map(([key, own]) => ({ key, agent: writtenAgent(own) })),
    ...(rows !== undefined && { rowsKey: pathText(rows.path) }),
    ...(warmStart?.policy !== undefined && { warmStart: { policy: warmStart.policy } }),
    ...(typeof tokenizer !== "string" && { tokenizerFiles: tokenizer.files }),
    environments: parts.flatMap(({ path, name, tasks }) => {
      const played = environmentOfTasks(tasks);
      if (played === undefined) return [];
      const agentKey = agentKeys.get(agentOfPart(run, name));
      return [
        {
          key: pathText(path),
          name: played.environment,
          config: played.config,
          ...(agentKey !== undefined && { agentKey }),
        },
      ];
    }),
  };
}

function writtenAgent({ name, config, configPath }: RunConfig["agent"]): WrittenAgent {
  return {
    name,
    ...(config !== undefined && { config }),
    ...(configPath !== undefined && { configPath }),
  };
}

/** The agents that parts of the tasks have of their own, with their keys. */
function ownAgentsOf(run: RunConfig): [key: string, agent: RunConfig["agent"]][] {
  return taskPartsOf(run).flatMap(({ path, part }) =>
    part?.agent === undefined ? [] : [[pathText([...path.slice(0, -1), "agent"]), part.agent]],
  );
}
