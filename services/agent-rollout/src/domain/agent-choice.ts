/** Chooses which agent plays a task, and with which configuration. */

import { agentOfRow } from "@hone/agents";

/** The agent of a task, as the agent catalogue takes it. */
export interface ChosenAgent {
  readonly name: string;
  /** JSON; undefined = the agent's defaults. */
  readonly configJson: string | undefined;
}

/**
 * A row's agent takes precedence over the run's. The run's configuration is used only for the run's own agent.
 * @param configAt reads the YAML file that a row names. @throws its errors.
 */
export async function chooseAgent(
  run: ChosenAgent,
  row: Readonly<Record<string, unknown>> | undefined,
  configAt: (path: string) => Promise<string>,
): Promise<ChosenAgent> {
  const asked = agentOfRow(row);
  const name = asked.name ?? run.name;
  if (asked.configPath !== undefined) return { name, configJson: await configAt(asked.configPath) };
  return { name, configJson: name === run.name ? run.configJson : undefined };
}
