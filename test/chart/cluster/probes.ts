/** Runs probes as a kubelet does, with the manifest's figures. */

import { delay } from "@hone/core";
import type { Manifest } from "../helm.ts";

/** Time between two tries. A kubelet would wait for the manifest's period, which here only counts for the time limit. */
const LOOK_MS = 200;

/** Tries a probe once. @returns false without an answer of status 200 to 399. */
export async function probe(address: string, container: Manifest, definition: Manifest): Promise<boolean> {
  const { httpGet, timeoutSeconds = 1 } = definition;
  if (httpGet === undefined) throw new Error("only HTTP probes can be run from outside of a pod");
  const port =
    typeof httpGet.port === "number"
      ? httpGet.port
      : container.ports.find((each: Manifest) => each.name === httpGet.port).containerPort;
  try {
    const answer = await fetch(`http://${address}:${port}${httpGet.path}`, {
      signal: AbortSignal.timeout(timeoutSeconds * 1_000),
    });
    await answer.body?.cancel();
    return answer.status >= 200 && answer.status < 400;
  } catch {
    return false;
  }
}

/** The time that a probe allows: its number of failures times its period. */
export function budgetMs({ failureThreshold = 3, periodSeconds = 10 }: Manifest): number {
  return failureThreshold * periodSeconds * 1_000;
}

/** Waits until the probe passes. @returns false when its time is over. */
export async function untilPassing(
  address: string,
  container: Manifest,
  definition: Manifest,
  options: { readonly deadlineMs: number; readonly signal: AbortSignal },
): Promise<boolean> {
  const end = performance.now() + options.deadlineMs;
  while (performance.now() < end) {
    options.signal.throwIfAborted();
    if (await probe(address, container, definition)) return true;
    await delay(LOOK_MS, { signal: options.signal });
  }
  return false;
}
