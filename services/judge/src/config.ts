/** The configuration of the judge. */

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
  /** Most episodes in work at once. */
  readonly concurrency: number;
  /** Most processes that run models' Python, and most that run rows' tests. */
  readonly sandboxProcesses: number;
  /** Decides which modules run files may name. */
  readonly gate: CodeGate;
  /** The keys of servers that judges call. */
  readonly keys: BoundKeys;
}

/** The stream stores thousands of messages a second, so more episodes at once would only wait. */
const DEFAULT_CONCURRENCY = 256;

const shape = z.object({
  HONE_JUDGE_SANDBOX_PROCESSES: environmentInteger(1, 256).default(defaultProcesses),
  HONE_JUDGE_CONCURRENCY: environmentInteger(1, 10_000).default(DEFAULT_CONCURRENCY),
});

/** @throws {ConfigError} that names every variable that is wrong. */
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
