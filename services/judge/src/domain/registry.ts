/**
 * The judges of single episodes by kind; the one that compares groups is `judges/group.ts`.
 *
 * To add one, add its kind to the run file's schema (@hone/config), a file in `judges/` that makes the judge from its
 * configuration, and a row in JUDGES. The table is typed over all kinds, so a missing row does not compile.
 */

import type { EpisodeJudgeConfig } from "@hone/config";
import type { Judge } from "./judge.ts";
import type { JudgeMaker, JudgeParts } from "./judge-parts.ts";
import { degenerateJudge } from "./judges/degenerate.ts";
import { judgeEnvironment } from "./judges/environment.ts";
import { exactJudge } from "./judges/exact.ts";
import { judgeFormat } from "./judges/format.ts";
import { gsm8kJudge } from "./judges/gsm8k.ts";
import { httpJudge } from "./judges/http.ts";
import { jsonSchemaJudge } from "./judges/json-schema.ts";
import { llmJudge } from "./judges/llm.ts";
import { mathJudge } from "./judges/math.ts";
import { mathDapoJudge } from "./judges/math-dapo.ts";
import { moduleJudge } from "./judges/module.ts";
import { pythonJudge } from "./judges/python.ts";
import { regexJudge } from "./judges/regex.ts";
import { rewardModelJudge } from "./judges/reward-model.ts";

const JUDGES: { readonly [Kind in EpisodeJudgeConfig["kind"]]: JudgeMaker<Kind> } = {
  degenerate: degenerateJudge,
  environment: () => judgeEnvironment,
  exact: exactJudge,
  format: () => judgeFormat,
  gsm8k: gsm8kJudge,
  http: httpJudge,
  json_schema: jsonSchemaJudge,
  llm: llmJudge,
  math: mathJudge,
  math_dapo: mathDapoJudge,
  module: moduleJudge,
  python: pythonJudge,
  regex: regexJudge,
  reward_model: rewardModelJudge,
};

/** Makes the judge that a run file describes. */
export async function makeJudge(config: EpisodeJudgeConfig, parts: JudgeParts): Promise<Judge> {
  // The compiler cannot see that the maker and the configuration are of the same kind.
  const make = JUDGES[config.kind] as (
    config: EpisodeJudgeConfig,
    parts: JudgeParts,
  ) => Judge | Promise<Judge>;
  return make(config, parts);
}
