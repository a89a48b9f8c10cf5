/** Numbers of processes of the services in a stack. */

import { nearest } from "@hone/core";
import { UsageError } from "../errors.ts";
import { replicaOf, SERVICES, type ServiceName, type ServiceReplica } from "./services.ts";

/** Number of processes of each service; 0 = the stack does not run it, because the user does. */
export type Replicas = Readonly<Record<ServiceName, number>>;

/** The same as `--replicas`, also for commands that start a stack without that option. */
export const REPLICAS_VARIABLE = "HONE_REPLICAS";

/** Limited, because each process takes 100 MiB or more, for its own heap, connections and engine. */
const MAX_REPLICAS = 16;

/**
 * Parses `NAME=COUNT,NAME=COUNT`; services that are not named run once.
 * @param from the option or variable of the text, for errors.
 * @param without services that the user runs.
 * @throws {UsageError} for other text and for counts that are not possible.
 */
export function parseReplicas(text: string, from: string, without: readonly ServiceName[] = []): Replicas {
  const counts: Record<string, number> = Object.fromEntries(
    SERVICES.map((name) => [name, without.includes(name) ? 0 : 1]),
  );
  const named = new Set<ServiceName>();
  for (const part of text.split(",").filter((each) => each.trim() !== "")) {
    const [name = "", countText = "", ...rest] = part.split("=").map((each) => each.trim());
    const service = serviceNamed(name, from);
    const count = /^\d+$/.test(countText) && rest.length === 0 ? Number(countText) : Number.NaN;
    if (!(count >= 1 && count <= MAX_REPLICAS)) {
      throw new UsageError(
        `${part} in ${from} is not SERVICE=COUNT with a count of 1 to ${MAX_REPLICAS}; to leave a service out, use --without`,
      );
    }
    if (named.has(service)) throw new UsageError(`${from} names ${service} more than once: ${text}`);
    if (without.includes(service))
      throw new UsageError(`${part} in ${from} contradicts --without, which leaves ${service} out`);
    if (service === "tracer" && count > 1) {
      throw new UsageError(
        `${part} in ${from} is not possible: there can be only one tracer, as the page and all spans need its one address`,
      );
    }
    named.add(service);
    counts[service] = count;
  }
  return counts as Replicas;
}

/** Whether a value that was read from a file has a valid number of processes for each service. */
export function isReplicas(value: unknown): value is Replicas {
  if (typeof value !== "object" || value === null) return false;
  const counts = value as Readonly<Record<string, unknown>>;
  return SERVICES.every((name) => {
    const count = counts[name];
    return Number.isInteger(count) && (count as number) >= 0 && (count as number) <= MAX_REPLICAS;
  });
}

/** The processes of a stack, in the order in which they are shown. */
export function replicasOf(counts: Replicas): ServiceReplica[] {
  return SERVICES.flatMap((service) =>
    Array.from({ length: counts[service] }, (_, index) => replicaOf(service, index)),
  );
}

/** @throws {UsageError} for several processes of a service together with `--in-process`. */
export function requireSingle(counts: Replicas): void {
  const several = describeReplicas(counts);
  if (several === "") return;
  throw new UsageError(
    `--in-process runs each service once, so it cannot be used with several processes${several}`,
  );
}

/** The services that run more than once, such as " (2 agent-rollout, 2 trainer)"; "" if there are none. */
export function describeReplicas(counts: Replicas): string {
  const several = SERVICES.filter((name) => counts[name] > 1).map((name) => `${counts[name]} ${name}`);
  return several.length === 0 ? "" : ` (${several.join(", ")})`;
}

function serviceNamed(name: string, from: string): ServiceName {
  const known = SERVICES.find((each) => each === name);
  if (known !== undefined) return known;
  const guess = nearest(name, SERVICES);
  const hint = guess === undefined ? "" : `; did you mean ${guess}?`;
  throw new UsageError(
    `there is no service ${JSON.stringify(name)} for ${from}; the services are ${SERVICES.join(", ")}${hint}`,
  );
}
