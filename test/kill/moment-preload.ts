/**
 * Is loaded into every service of a stack under test, before the service itself, and into each of its threads:
 *
 *   NODE_OPTIONS="--import …/moment-preload.ts" HONE_TEST_MOMENTS=<folder of the gate's files>
 */

import { getEnvironmentData, isMainThread, setEnvironmentData } from "node:worker_threads";
import { MomentGate, newProgress } from "./seams/moment-gate.ts";
import { watchRenames } from "./seams/watch-renames.ts";
import { watchSockets } from "./seams/watch-sockets.ts";
import { watchThreads } from "./seams/watch-threads.ts";

const SHARED = "hone-test-moments";
const SERVICE = /services\/([a-z-]+)\/src\/main\.ts$/;

interface Shared {
  readonly service: string;
  readonly progress: Int32Array<SharedArrayBuffer>;
}

const folder = process.env.HONE_TEST_MOMENTS;
const service = SERVICE.exec(process.argv[1] ?? "")?.[1];
if (isMainThread && service !== undefined) {
  setEnvironmentData(SHARED, { service, progress: newProgress() } satisfies Shared as never);
}
const shared = getEnvironmentData(SHARED) as unknown as Shared | undefined;
if (folder !== undefined && shared !== undefined) {
  const gate = new MomentGate(folder, shared.service, shared.progress);
  watchSockets(gate);
  watchRenames(gate);
  watchThreads(gate);
}
