/** The thread of page-files.ts: removes the types of the texts that it is started with, and sends the results back. */

import { stripTypeScriptTypes } from "node:module";
import { parentPort, workerData } from "node:worker_threads";

const stripped: Record<string, string> = {};
for (const [name, text] of Object.entries(workerData as Record<string, string>)) {
  try {
    stripped[name] = stripTypeScriptTypes(text);
  } catch (cause) {
    throw new Error(`${name}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}
parentPort?.postMessage(stripped);
