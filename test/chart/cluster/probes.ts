/** Probes as the kubelet makes them, from the manifest's own figures. */

import { delay } from "@hone/core";
import type { Manifest } from "../helm.ts";

/** Between two looks; a kubelet would wait for the manifest's period, which is part of the budget here. */
const LOOK_MS = 200;

/** One try. False for whatever is no answer between 200 and 399. */
export async function probe(address: string, container: Manifest, definition: Manifest): Promise<boolean> {
  const { httpGet, timeoutSeconds = 1 } = definition;
  if (httpGet === undefined) throw new Error("only HTTP probes can be made from outside");
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

/** What a kubelet allows: so many failures, a period apart. */
export function budgetMs({ failureThreshold = 3, periodSeconds = 10 }: Manifest): number {
  return failureThreshold * periodSeconds * 1_000;
}

/** Waits until the probe passes. @returns false when its budget is used up. */
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
