/** The line of `hone status` about what waits on the bus. */

import { type Bus, type ConsumerBacklog, rolloutQueues } from "@hone/messaging";

type Backlog = Pick<ConsumerBacklog, "pending" | "inWork">;

/** @returns one line; undefined if nothing waits and nobody works. @throws {BusUnavailableError} when the server does not answer. */
export async function readQueueLine(bus: Bus): Promise<string | undefined> {
  const { jobs, episodes } = await rolloutQueues(bus);
  return queueLine(jobs, episodes);
}

/** @param jobs of all runs, for agent-rollout. @param episodes of all runs, for the judge. */
export function queueLine(jobs: Backlog, episodes: Backlog): string | undefined {
  const parts = [
    ["jobs wait for agent-rollout", jobs],
    ["episodes wait for the judge", episodes],
  ] as const;
  if (parts.every(([, { pending, inWork }]) => pending + inWork === 0)) return undefined;
  return `queues: ${parts.map(([what, { pending, inWork }]) => `${pending} ${what}, which works on ${inWork}`).join("; ")}`;
}
