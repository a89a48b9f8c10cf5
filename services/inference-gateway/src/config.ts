/** Configuration of the inference gateway, from the environment. */

import { environmentInteger, readEnvironment } from "@hone/config";
import { type BaseConfig, type Environment, readBaseConfig } from "@hone/service-kit";
import { z } from "zod";

const MIB = 2 ** 20;

const schema = z.object({
  /** Sequences that run at once, over all models. */
  HONE_INFERENCE_MAX_SEQUENCES: environmentInteger(1, 65_536).default(256),
  /** Requests that wait beside them; more are refused as busy. */
  HONE_INFERENCE_MAX_WAITING: environmentInteger(1, 1_000_000).default(4_096),
  /** Memory for keys and values of each loaded policy version, MiB; at most what all sequences take at their longest. */
  HONE_INFERENCE_CACHE_MIB: environmentInteger(1, 1_048_576).default(512),
  /** Threads that share one operator. More than one pays off for models above some ten million parameters. */
  HONE_INFERENCE_THREADS: environmentInteger(1, 8).default(1),
  /** Longest silence towards a caller that waits. */
  HONE_INFERENCE_HEARTBEAT_MS: environmentInteger(50, 60_000).default(1_500),
  /** How long a request for a version that is not loaded yet waits here before it is refused as behind. */
  HONE_INFERENCE_VERSION_WAIT_MS: environmentInteger(0, 600_000).default(10_000),
  /** Time between two reports of this replica's state; changes are reported at once. */
  HONE_INFERENCE_REPORT_MS: environmentInteger(100, 10_000).default(2_000),
});

export interface InferenceGatewayConfig extends BaseConfig {
  readonly maxSequences: number;
  readonly maxWaiting: number;
  readonly maxCacheBytes: number;
  readonly intraOpThreads: number;
  readonly heartbeatMs: number;
  readonly versionWaitMs: number;
  readonly reportMs: number;
}

/** @throws {ConfigError} naming every variable that is wrong. */
export function readInferenceGatewayConfig(environment: Environment): InferenceGatewayConfig {
  const read = readEnvironment(schema, environment);
  return {
    ...readBaseConfig(environment),
    maxSequences: read.HONE_INFERENCE_MAX_SEQUENCES,
    maxWaiting: read.HONE_INFERENCE_MAX_WAITING,
    maxCacheBytes: read.HONE_INFERENCE_CACHE_MIB * MIB,
    intraOpThreads: read.HONE_INFERENCE_THREADS,
    heartbeatMs: read.HONE_INFERENCE_HEARTBEAT_MS,
    versionWaitMs: read.HONE_INFERENCE_VERSION_WAIT_MS,
    reportMs: read.HONE_INFERENCE_REPORT_MS,
  };
}
