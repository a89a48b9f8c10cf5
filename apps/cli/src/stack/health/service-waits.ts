/** Reads from a service's /metrics what waits there: for a sandbox process, or for a client of the swarm. */

import { readText } from "@hone/core";
import { episodesIn } from "./episode-waits.ts";
import { ANSWER_TIMEOUT_MS, MAX_ANSWER_BYTES } from "./probes.ts";
import { waitsIn } from "./sandbox-waits.ts";

/** @returns one line; empty if nothing waits, or the service does not answer. */
export async function serviceWaits(name: string, port: number): Promise<string> {
  const url = `http://127.0.0.1:${port}`;
  try {
    const response = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) });
    const metrics = await readText(response, MAX_ANSWER_BYTES);
    // Services that run in one process share their metrics.
    const episodes = name.startsWith("agent-rollout") ? episodesIn(metrics, url) : "";
    return [waitsIn(metrics), episodes].filter((line) => line !== "").join("; ");
  } catch {
    return ""; // its row already shows that it does not answer
  }
}
