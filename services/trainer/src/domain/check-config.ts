/** What this build's trainer cannot do of what the run file's schema allows: refused, never ignored. */

import { problemMessage, type RunConfig } from "@hone/config";
import type { Problem } from "./run-event.ts";

/**
 * The embedded engine recomputes log-probabilities under the plain softmax of the logits. Rollouts that sampled from
 * another distribution would be trained with ratios that are wrong from the start.
 */
const PLAIN_SAMPLING = { temperature: 1, topP: 1, topK: 0 } as const;

/** @returns what is wrong with a resolved run file for this trainer; empty when it can train it. */
export function checkConfig({ rollout }: RunConfig): Problem[] {
  return Object.entries(PLAIN_SAMPLING).flatMap(([name, allowedValue]) => {
    const value = rollout.sampling[name as keyof typeof PLAIN_SAMPLING];
    if (value === allowedValue) return [];
    const key = `rollout.sampling.${name}`;
    const allowed = `${allowedValue} with the training engine "onnx", which trains on the plain distribution of the model`;
    return [{ key, valueJson: JSON.stringify(value), allowed, message: problemMessage(key, value, allowed) }];
  });
}
