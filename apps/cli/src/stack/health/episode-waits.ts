/** Finds in a service's metrics how many episodes wait for a client, and how many clients have one. */

const SERIES = /^hone_swarm_episodes\{state="(waiting|lent)"\} (\d+)/gm;

/**
 * @param metrics text of /metrics.
 * @param url where clients ask for episodes.
 * @returns one line; empty if there are no episodes for clients.
 */
export function episodesIn(metrics: string, url: string): string {
  const sums = { waiting: 0, lent: 0 };
  for (const [, state, value] of metrics.matchAll(SERIES)) sums[state as keyof typeof sums] += Number(value);
  const { waiting, lent } = sums;
  if (waiting === 0 && lent === 0) return "";
  const have = `clients have ${lent}`;
  if (waiting === 0) return `${have} of its episodes`;
  return `${waiting} ${waiting === 1 ? "episode waits" : "episodes wait"} for a client at ${url}, ${have}`;
}
