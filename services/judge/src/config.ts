/** What the judge is configured with. */

import {
  type BoundKeys,
  type CodeGate,
  environmentInteger,
  readCodeGate,
  readEnvironment,
} from "@hone/config";
import { defaultProcesses } from "@hone/sandbox";
import { type BaseConfig, type Environment, readBaseConfig } from "@hone/service-kit";
import { z } from "zod";
import { judgeKeys } from "./judge-keys.ts";

export interface JudgeServiceConfig extends BaseConfig {
  /** Episodes in work at once. */
  readonly concurrency: number;
  /** Processes that run the Python of models. */
  readonly sandboxProcesses: number;
  /** For modules that run files name. */
  readonly gate: CodeGate;
  /** Of programs that judges ask. */
  readonly keys: BoundKeys;
}

/** Publishes under way at once; a store answers thousands a second, so more would only wait. */
const DEFAULT_CONCURRENCY = 256;

const shape = z.object({
  HONE_JUDGE_SANDBOX_PROCESSES: environmentInteger(1, 256).default(defaultProcesses),
  HONE_JUDGE_CONCURRENCY: environmentInteger(1, 10_000).default(DEFAULT_CONCURRENCY),
});

/** @throws {ConfigError} with every variable that is wrong. */
export function readJudgeConfig(environment: Environment): JudgeServiceConfig {
  const own = readEnvironment(shape, environment);
  const base = readBaseConfig(environment);
  return {
    ...base,
    gate: readCodeGate(environment, base.filesDir),
    concurrency: own.HONE_JUDGE_CONCURRENCY,
    sandboxProcesses: own.HONE_JUDGE_SANDBOX_PROCESSES,
    keys: judgeKeys(environment),
  };
}
