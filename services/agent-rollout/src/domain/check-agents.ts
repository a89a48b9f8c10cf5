/**
 * Whether the agents of a run can be built: that of the run itself, and those that its rows name. Nothing is started for it,
 * and no server of tools is asked: a run that is only looked at has no effect outside.
 */

import { type AgentCatalog, BadRowError, type LoadedModules, promptOfRow, toolsOfRow } from "@hone/agents";
import { describeError, InvalidInputError, RetryableError, TerminalError } from "@hone/core";
import { type ChosenAgent, chooseAgent } from "./agent-choice.ts";
import type { RunProblem } from "./validate-run.ts";

/** Rows of one split. */
export interface RowsOfSplit {
  /** Key of the split's source, such as `dataset.train.path`. */
  readonly key: string;
  readonly rows: readonly { readonly id: string; readonly row: Readonly<Record<string, unknown>> }[];
}

export interface CheckAgentsOptions {
  readonly agents: AgentCatalog;
  readonly modules: LoadedModules;
  readonly agentConfigAt: (path: string) => Promise<string>;
}

/** At most one problem for the run's agent, and one for each split. */
export async function checkAgents(
  run: ChosenAgent,
  splits: readonly RowsOfSplit[],
  options: CheckAgentsOptions,
): Promise<RunProblem[]> {
  const own = await problemOf("agent.config", run, options);
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
        allowed: "a dataset whose rows name agents and files that are there",
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
): Promise<RunProblem | undefined> {
  try {
    await agents.check({ name, configJson, modules });
    return undefined;
  } catch (error) {
    // What cannot be reached now would hold every rollout up; whoever asked can mend it, or ask again.
    if (!(error instanceof TerminalError || error instanceof RetryableError)) throw error;
    return {
      key: key === "agent.config" && error instanceof InvalidInputError ? placeOf(error.path) : key,
      value: name,
      allowed: error instanceof InvalidInputError ? error.allowed : "an agent that can be built",
      message: describeError(error),
    };
  }
}

/** Of a configuration's key within the run file. */
function placeOf(path: string): string {
  return path.startsWith("agent") ? path.replace(/^agent(?=\.)/, "agent.config") : `agent.config.${path}`;
}
