/** How many processes of each service a stack runs. */

import { nearest } from "@hone/core";
import { UsageError } from "../errors.ts";
import { replicaOf, SERVICES, type ServiceName, type ServiceReplica } from "./services.ts";

/** Processes of each service that a stack runs; 0 = somebody else runs it. */
export type Replicas = Readonly<Record<ServiceName, number>>;

/** As `--replicas`, for commands that start a stack of their own. */
export const REPLICAS_VARIABLE = "HONE_REPLICAS";

/** Each is a process of 100 MiB and more with a heap, connections and an engine of its own. */
const MAX_REPLICAS = 16;

/**
 * Reads `NAME=COUNT,NAME=COUNT`; what is not named runs once.
 * @param from where the text comes from, for the error.
 * @param without services that somebody else runs.
 * @throws {UsageError} for anything else, and for counts that make no sense.
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
      throw refusal(
        from,
        `takes SERVICE=COUNT with a count of 1 to ${MAX_REPLICAS} (--without leaves a service out)`,
        part,
      );
    }
    if (named.has(service)) throw refusal(from, "names each service once", text);
    if (without.includes(service))
      throw refusal(from, "cannot name a service that --without leaves out", part);
    if (service === "tracer" && count > 1) {
      throw refusal(
        from,
        "can only be 1 for the tracer, as its one address is that of the page and of all spans",
        part,
      );
    }
    named.add(service);
    counts[service] = count;
  }
  return counts as Replicas;
}

/** Whether a value, of a file that anybody may have written, says how many processes each service has. */
export function isReplicas(value: unknown): value is Replicas {
  if (typeof value !== "object" || value === null) return false;
  const counts = value as Readonly<Record<string, unknown>>;
  return SERVICES.every((name) => {
    const count = counts[name];
    return Number.isInteger(count) && (count as number) >= 0 && (count as number) <= MAX_REPLICAS;
  });
}

/** The processes of a stack, in the order in which they are told of. */
export function replicasOf(counts: Replicas): ServiceReplica[] {
  return SERVICES.flatMap((service) =>
    Array.from({ length: counts[service] }, (_, index) => replicaOf(service, index)),
  );
}

/** @throws {UsageError} for several processes of a service where all services are to run in one (`--in-process`). */
export function requireSingle(counts: Replicas): void {
  const several = describeReplicas(counts);
  if (several === "") return;
  throw new UsageError(
    `Cannot run replicas in this process as --in-process runs each service once: current value is${several}`,
  );
}

/** What runs more than once, such as " (2 agent-rollout, 2 trainer)"; "" where nothing does. */
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
    `Cannot run replicas as ${from} must name one of ${SERVICES.join(", ")}: current value is ${JSON.stringify(name)}${hint}`,
  );
}

function refusal(from: string, rule: string, value: string): UsageError {
  return new UsageError(`Cannot run replicas as ${from} ${rule}: current value is ${value}`);
}
