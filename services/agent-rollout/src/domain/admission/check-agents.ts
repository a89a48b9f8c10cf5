/**
 * Checks whether the agents of a run can be built: the run's own agent, and those that its rows name. The check starts no
 * program and asks no server of tools, so validating a run has no effect outside this process.
 */

import { type AgentCatalog, BadRowError, type LoadedModules, promptOfRow, toolsOfRow } from "@hone/agents";
import { describeError, InvalidInputError, RetryableError, TerminalError } from "@hone/core";
import { type ChosenAgent, chooseAgent } from "../agent-choice.ts";
import type { RunProblem } from "./validate-run.ts";

/** The first rows of one split. */
export interface RowsOfSplit {
  /** Key of the split's source, such as `dataset.train.path`. */
  readonly key: string;
  /** Name of the part of a mix; absent = none. */
  readonly part?: string;
  readonly rows: readonly { readonly id: string; readonly row: Readonly<Record<string, unknown>> }[];
}

export interface CheckAgentsOptions {
  readonly agents: AgentCatalog;
  readonly modules: LoadedModules;
  readonly agentConfigAt: (path: string) => Promise<string>;
}

/**
 * @param key of the agent in the run file.
 * @param splits the rows that the agent plays, unless they name another.
 * @returns at most one problem with the agent, or else at most one with each split.
 */
export async function checkAgents(
  key: string,
  run: ChosenAgent,
  splits: readonly RowsOfSplit[],
  options: CheckAgentsOptions,
): Promise<RunProblem[]> {
  const own = await problemOf(`${key}.config`, run, options, key);
  if (own !== undefined) return [own];
  const problems = await Promise.all(splits.map((split) => problemOfRows(run, split, options)));
  return problems.flatMap((problem) => problem ?? []);
}

async function problemOfRows(
  run: ChosenAgent,
  { key, rows }: RowsOfSplit,
  options: CheckAgentsOptions,
): Promise<RunProblem | undefined> {
  for (const { id, row } of rows) {
    try {
      const chosen = await chooseAgent(run, row, options.agentConfigAt);
      const problem = await problemOf(key, chosen, options);
      if (problem !== undefined) return { ...problem, message: `${id}: ${problem.message}` };
      const { definition } = await options.agents.check({ ...chosen, modules: options.modules });
      if (definition.needsRow === true) promptOfRow({ id, row });
      toolsOfRow({ id, row });
    } catch (error) {
      if (!(error instanceof TerminalError)) throw error;
      if (error instanceof BadRowError) {
        const allowed = "a dataset whose rows have what their agent needs";
        return { key, value: id, allowed, message: describeError(error) };
      }
      return {
        key,
        value: row.agent_cfg_path,
        allowed: "a dataset whose rows name existing agents and files",
        message: `${id}: ${describeError(error)}`,
      };
    }
  }
  return undefined;
}

async function problemOf(
  key: string,
  { name, configJson }: ChosenAgent,
  { agents, modules }: CheckAgentsOptions,
  agentKey?: string,
): Promise<RunProblem | undefined> {
  try {
    await agents.check({ name, configJson, modules });
    return undefined;
  } catch (error) {
    // A server that cannot be reached now is reported too, as every rollout would wait for it.
    if (!(error instanceof TerminalError || error instanceof RetryableError)) throw error;
    return {
      key: agentKey !== undefined && error instanceof InvalidInputError ? placeOf(error.path, agentKey) : key,
      value: name,
      allowed: error instanceof InvalidInputError ? error.allowed : "an agent that can be built",
      message: describeError(error),
    };
  }
}

/** The key within the run file of a key within the agent's configuration. */
function placeOf(path: string, agentKey: string): string {
  const config = `${agentKey}.config`;
  return path.startsWith("agent") ? path.replace(/^agent(?=\.)/, config) : `${config}.${path}`;
}
