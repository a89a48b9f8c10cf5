/** Reads from RUN_STATE which policies of a run an engine must load. */

import path from "node:path";
import { modelIdOf } from "@hone/core";
import { quantizationFromWire } from "@hone/messaging";
import { type PolicyState, RunPhase, type RunState } from "@hone/proto-gen/run";
import type { Logger } from "@hone/telemetry";
import type { PolicySource } from "../domain/inference-engine.ts";

/** @returns the run's own policy and its further ones; none before the run has weights, and none that this engine must not or cannot load. */
export function policySourcesOf(
  run: string,
  { location, version, digest, policies, quantization, publishedIn }: RunState,
  stateDir: string,
  logger: Logger,
): PolicySource[] {
  // A run has no location until its first weights are written.
  if (location === "") return [];
  const served = [{ model: run, version, location, digest }, ...policies];
  return served.flatMap(
    (each) => sourceOf(run, { ...each, quantization, publishedIn }, stateDir, logger) ?? [],
  );
}

function sourceOf(
  run: string,
  { model, location, version, digest, quantization: wire, publishedIn }: ServedWeights,
  stateDir: string,
  logger: Logger,
): PolicySource | undefined {
  if (model !== run && !model.startsWith(modelIdOf(run, ""))) {
    logger.error("a run names a model that is not its own", { run, model });
    return undefined;
  }
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
  const published = publishedIn !== "" && { publishedIn };
  return { model, version, folder, digest, quantization, ...published };
}

type ServedWeights = Pick<PolicyState, "model" | "version" | "location" | "digest"> &
  Pick<RunState, "quantization" | "publishedIn">;

export function hasEnded({ phase }: RunState): boolean {
  return phase === RunPhase.COMPLETED || phase === RunPhase.FAILED || phase === RunPhase.CANCELLED;
}
