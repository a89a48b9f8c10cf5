/** Makes the environment that a task names. */

import {
  checkConfig,
  type Environment,
  type EnvironmentContext,
  type EnvironmentDefinition,
  environmentOf,
  type ModuleExports,
} from "@hone/agents";
import { InvalidInputError, parseJson } from "@hone/core";
import { UnusableJobError } from "./errors.ts";

/** An environment as a task names it. */
export interface NamedEnvironment {
  readonly name: string;
  readonly configJson: string;
}

/**
 * Finds a task's environment and checks its configuration. @returns a function that makes it.
 * @throws {UnusableJobError} when it is unknown or its configuration is refused; the function, when it cannot be made.
 */
export function environmentMaker(
  { name, configJson }: NamedEnvironment,
  own: ModuleExports | undefined,
  context?: EnvironmentContext,
): () => Environment {
  const definition = definitionOf(name, own);
  const checked = checkConfig(definition.configSchema, parseConfig(configJson));
  if (checked.kind === "invalid") {
    const [problem] = checked.problems;
    throw new UnusableJobError(
      `the environment's ${problem?.path.join(".") || "configuration"} is ${JSON.stringify(problem?.value)}; it must be ${problem?.allowed}`,
    );
  }
  return () => {
    try {
      return definition.create(checked.config, context);
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error;
      throw new UnusableJobError(`its environment cannot be made: ${error.message}`, { cause: error });
    }
  };
}

/** Whether an environment acts outside of this process. @throws {UnusableJobError} when it is unknown. */
export function isRemote(name: string, own: ModuleExports | undefined): boolean {
  return definitionOf(name, own).isRemote ?? false;
}

function definitionOf(name: string, own: ModuleExports | undefined): EnvironmentDefinition<unknown> {
  const definition = environmentOf(name, own?.environments);
  if (definition === undefined) throw new UnusableJobError(`its environment "${name}" is unknown`);
  return definition;
}

function parseConfig(json: string): unknown {
  try {
    return json === "" ? {} : parseJson(json);
  } catch (cause) {
    throw new UnusableJobError(`the environment's configuration is not JSON: ${json.slice(0, 80)}`, {
      cause,
    });
  }
}
