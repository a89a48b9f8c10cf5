/** Reads from a service's /metrics how many programs wait for a sandbox process. */

import { readText } from "@hone/core";
import { ANSWER_TIMEOUT_MS, MAX_ANSWER_BYTES } from "./probes.ts";

const SERIES = /^hone_sandbox_(processes|waiting)\{[^}]*\} (\d+)/gm;

/** @returns one line; empty if nothing waits, or the service does not answer. */
export async function sandboxWaits(port: number): Promise<string> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/metrics`, {
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
    });
    return waitsIn(await readText(response, MAX_ANSWER_BYTES));
  } catch {
    return ""; // its row already shows that it does not answer
  }
}

/** @param metrics text of /metrics. */
export function waitsIn(metrics: string): string {
  const sums = { processes: 0, waiting: 0 };
  for (const [, figure, value] of metrics.matchAll(SERIES)) {
    sums[figure as keyof typeof sums] += Number(value);
  }
  const { processes, waiting } = sums;
  if (waiting === 0) return "";
  return `${waiting} ${waiting === 1 ? "run" : "runs"} of a model's code wait for one of ${processes} sandbox processes`;
}
