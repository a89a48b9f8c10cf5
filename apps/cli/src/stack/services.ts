/**
 * The services of a stack: their names, what they need, and the order in which they stop.
 *
 * N1: the first process of a service has the service's name, and further ones are called `<service>-1`, `<service>-2`, …: in
 *     the stack file, and in the names of their log and ready files.
 */

import type { Role } from "@hone/storage";

/** In the order in which they are shown. */
export const SERVICES = [
  "tracer",
  "dataset",
  "judge",
  "inference-gateway",
  "agent-rollout",
  "trainer",
] as const;
export type ServiceName = (typeof SERVICES)[number];

/** The services that use the database, each with the role of its name. */
export const ROW_KEEPERS = ["tracer", "trainer"] as const satisfies readonly (ServiceName & Role)[];
export type RowKeeper = (typeof ROW_KEEPERS)[number];

export function isRowKeeper(service: ServiceName): service is RowKeeper {
  return ROW_KEEPERS.some((name) => name === service);
}

/**
 * The order in which services stop. Services that request work stop before those that do it: a rollout that drains still needs
 * the policy. The tracer stops last, because the others send it their last spans.
 */
export const STOP_ORDER: readonly (readonly ServiceName[])[] = [
  ["trainer", "agent-rollout"],
  ["judge", "dataset", "inference-gateway"],
  ["tracer"],
];

/** One process of a service. */
export interface ServiceReplica {
  readonly service: ServiceName;
  /** Counted from 0. */
  readonly index: number;
  /** N1 */
  readonly name: string;
}

/** @param index counted from 0. */
export function replicaOf(service: ServiceName, index: number): ServiceReplica {
  return { service, index, name: index === 0 ? service : `${service}-${index}` }; // N1
}
