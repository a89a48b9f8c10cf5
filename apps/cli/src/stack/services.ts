/**
 * The services of a stack: what they are called, what they need, and the order in which they end.
 *
 * N1: the first process of a service has the service's name, further ones `<service>-1`, `<service>-2`, …: in the stack
 *     file, for its log and its ready file.
 */

import type { Role } from "@hone/storage";

/** In the order in which they are told of. */
export const SERVICES = [
  "tracer",
  "dataset",
  "judge",
  "inference-gateway",
  "agent-rollout",
  "trainer",
] as const;
export type ServiceName = (typeof SERVICES)[number];

/** Those that keep rows, and so wait for the database; each enters it as the role of its name. */
export const ROW_KEEPERS = ["tracer", "trainer"] as const satisfies readonly (ServiceName & Role)[];
export type RowKeeper = (typeof ROW_KEEPERS)[number];

export function isRowKeeper(service: ServiceName): service is RowKeeper {
  return ROW_KEEPERS.some((name) => name === service);
}

/**
 * The order in which they end. Who makes work ends before who does it: a rollout that drains still needs the policy.
 * The tracer ends last, as the others send it their last spans.
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
