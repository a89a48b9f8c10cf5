/**
 * The judges by kind.
 *
 * Adding one: give it a kind in the run file's schema (@hone/config), a file of its own under `judges/` that makes the
 * judge from its part of the run file, and a row in JUDGES; the table is typed over all kinds, so a missing row does not
 * compile.
 */

import type { JudgeConfig, JudgeKind } from "@hone/config";
import type { Judge } from "./judge.ts";
import { judgeEnvironment } from "./judges/environment.ts";
import { exactJudge } from "./judges/exact.ts";
import { judgeFormat } from "./judges/format.ts";
import { gsm8kJudge } from "./judges/gsm8k.ts";
import { mathJudge } from "./judges/math.ts";
import { regexJudge } from "./judges/regex.ts";

/** What a run file says of a judge of one kind. */
export type ConfigOf<Kind extends JudgeKind> = Extract<JudgeConfig, { kind: Kind }>;

/** Makes a judge. @throws {Error} when what the run file says of it cannot be had. */
type JudgeMaker<Kind extends JudgeKind> = (config: ConfigOf<Kind>) => Judge | Promise<Judge>;

const JUDGES: { readonly [Kind in JudgeKind]: JudgeMaker<Kind> } = {
  environment: () => judgeEnvironment,
  exact: exactJudge,
  format: () => judgeFormat,
  gsm8k: gsm8kJudge,
  math: mathJudge,
  regex: regexJudge,
};

/** The judge that a run file describes. */
export async function makeJudge(config: JudgeConfig): Promise<Judge> {
  // The table is typed kind by kind; the compiler does not see that both sides are of the same one.
  const make = JUDGES[config.kind] as (config: JudgeConfig) => Judge | Promise<Judge>;
  return make(config);
}
