/** Whether the models outside that a run's roles name can be asked. */

import type { OutsideAccess, SessionRole } from "@hone/agents";
import { InvalidInputError } from "@hone/core";

/** @throws {InvalidInputError} naming the first role whose key is not set. */
export function checkRoles(
  roles: Readonly<Record<string, SessionRole>> | undefined,
  outside: OutsideAccess | undefined,
): void {
  for (const [name, { endpoint }] of Object.entries(roles ?? {})) {
    if (endpoint?.keyVariable === undefined) continue;
    checkKey(endpoint.keyVariable, `roles.${name}.endpoint.keyVariable`, outside);
  }
}

/**
 * @param path of the key that names the variable, below `agent`.
 * @returns the key.
 * @throws {InvalidInputError} when the variable is not set for this service.
 */
export function checkKey(variable: string, path: string, outside: OutsideAccess | undefined): string {
  const key = outside?.keyOf(variable);
  if (key !== undefined) return key;
  const allowed = "a variable that is set for agent-rollout";
  throw new InvalidInputError(
    `Cannot ask an endpoint as \`agent.${path}\` must be ${allowed}: current value is ${variable}`,
    { path, allowed },
  );
}
