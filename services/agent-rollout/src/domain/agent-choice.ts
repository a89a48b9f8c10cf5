/** Which agent plays a task, in which configuration. */

import { agentOfRow } from "@hone/agents";

/** The agent of a task as the catalogue is asked for it. */
export interface ChosenAgent {
  readonly name: string;
  /** JSON; undefined = its defaults. */
  readonly configJson: string | undefined;
}

/**
 * What a row says of its agent wins over what its run says; another agent does not take the run's configuration.
 * @param configAt reads the YAML file that a row names. @throws what it throws.
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
