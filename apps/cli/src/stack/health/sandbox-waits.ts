/** Finds in a service's metrics how many programs wait for a sandbox process. */

const SERIES = /^hone_sandbox_(processes|waiting)\{[^}]*\} (\d+)/gm;

/** @param metrics text of /metrics. @returns one line; empty if nothing waits. */
export function waitsIn(metrics: string): string {
  const sums = { processes: 0, waiting: 0 };
  for (const [, figure, value] of metrics.matchAll(SERIES)) {
    sums[figure as keyof typeof sums] += Number(value);
  }
  const { processes, waiting } = sums;
  if (waiting === 0) return "";
  return `${waiting} ${waiting === 1 ? "run" : "runs"} of a model's code wait for one of ${processes} sandbox processes`;
}
