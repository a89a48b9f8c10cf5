/** Reads from RUN_STATE which policy of a run an engine must load. */

import path from "node:path";
import { quantizationFromWire } from "@hone/messaging";
import { RunPhase, type RunState } from "@hone/proto-gen/run";
import type { Logger } from "@hone/telemetry";
import type { PolicySource } from "../domain/inference-engine.ts";

/** @returns undefined before the run has weights, and if this engine must not or cannot load them. */
export function policySourceOf(
  run: string,
  { location, version, digest, quantization: wire }: RunState,
  stateDir: string,
  logger: Logger,
): PolicySource | undefined {
  // A run has no location until its first weights are written.
  if (location === "") return undefined;
  const folder = path.resolve(stateDir, location);
  if (folder !== stateDir && !folder.startsWith(stateDir + path.sep)) {
    logger.error("a run's weights lie outside the state folder", { run, location });
    return undefined;
  }
  const quantization = quantizationFromWire(wire);
  if (quantization === undefined) {
    logger.error("a run's quantization is not known; its trainer has another version of Hone", { run, wire });
    return undefined;
  }
  return { model: run, version, folder, digest, quantization };
}

export function hasEnded({ phase }: RunState): boolean {
  return phase === RunPhase.COMPLETED || phase === RunPhase.FAILED || phase === RunPhase.CANCELLED;
}
