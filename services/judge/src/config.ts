/** What the judge is configured with. */

import { environmentInteger, readEnvironment } from "@hone/config";
import { type BaseConfig, type Environment, readBaseConfig } from "@hone/service-kit";
import { z } from "zod";

export interface JudgeServiceConfig extends BaseConfig {
  /** Episodes in work at once. */
  readonly concurrency: number;
  /** Keys of programs that judges ask, by the name of their variable. */
  readonly keys: Readonly<Record<string, string | undefined>>;
}

/** Publishes under way at once; a store answers thousands a second, so more would only wait. */
const DEFAULT_CONCURRENCY = 256;

/** Run files name variables, and send what they hold to addresses of their own: no other variable may be named. */
const KEY_PREFIX = "HONE_JUDGE_KEY";

const shape = z.object({
  HONE_JUDGE_CONCURRENCY: environmentInteger(1, 10_000).default(DEFAULT_CONCURRENCY),
});

/** @throws {ConfigError} with every variable that is wrong. */
export function readJudgeConfig(environment: Environment): JudgeServiceConfig {
  const own = readEnvironment(shape, environment);
  const keys = Object.entries(environment).filter(([name]) => name.startsWith(KEY_PREFIX));
  return {
    ...readBaseConfig(environment),
    concurrency: own.HONE_JUDGE_CONCURRENCY,
    keys: Object.fromEntries(keys),
  };
}
