/** The thread that reads the weights of one policy version, checks them, hands them over and ends. */

import { parentPort, workerData } from "node:worker_threads";
import { encodeError } from "../messages.ts";
import { loadPolicyFolder } from "./load-policy-folder.ts";
import type { ReadOrder, ReadPolicy } from "./read-policy.ts";

const port = parentPort!;
try {
  const { source, eightBits } = workerData as ReadOrder;
  const { spec, weights } = await loadPolicyFolder(source, eightBits);
  // Moved, not copied.
  const buffers = new Set(Object.values(weights).map(({ buffer }) => buffer as ArrayBuffer));
  port.postMessage({ kind: "read", spec, weights } satisfies ReadPolicy, [...buffers]);
} catch (error) {
  port.postMessage({ kind: "failed", error: encodeError(error) } satisfies ReadPolicy);
}
