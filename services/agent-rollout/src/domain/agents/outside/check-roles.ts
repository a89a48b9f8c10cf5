/** Checks whether the external models that a run's roles name can be called. */

import type { OutsideAccess, SessionRole } from "@hone/agents";
import { BoundKeys } from "@hone/config";

/** @throws {InvalidInputError} that names the first role whose key is not set, or may not be sent to its address. */
export function checkRoles(
  roles: Readonly<Record<string, SessionRole>> | undefined,
  outside: OutsideAccess | undefined,
): void {
  for (const [name, { endpoint }] of Object.entries(roles ?? {})) {
    if (endpoint?.keyVariable === undefined) continue;
    const { keyVariable, baseUrl } = endpoint;
    keysOf(outside).keyFor(keyVariable, baseUrl, `agent.roles.${name}.endpoint.keyVariable`);
  }
}

export function keysOf(outside: OutsideAccess | undefined): BoundKeys {
  return outside?.keys ?? BoundKeys.none;
}
