/** The conformance table: the rows that answer golden cases, and the families that no row answers yet. */

import type { Row } from "./row.ts";
import { aggregationRows } from "./rows/aggregation.ts";
import { rewardRows } from "./rows/rewards.ts";
import { rollAdvantageRows } from "./rows/roll-advantages.ts";
import { rollPipelineRows } from "./rows/roll-pipeline.ts";
import { verlGroupRows } from "./rows/verl-groups.ts";
import { verlTokenRows } from "./rows/verl-tokens.ts";

export const ROWS: readonly Row[] = [
  ...verlGroupRows,
  ...verlTokenRows,
  ...rollAdvantageRows,
  ...rollPipelineRows,
  ...rewardRows,
  ...aggregationRows,
];

/** Families of cases that no row answers, and why. A case that neither this nor `ROWS` claims fails the test. */
export const NOT_YET: readonly (Pick<Row, "family" | "functions" | "named"> & { readonly why: string })[] = [
  { family: "verl/policy-loss", why: "losses are compared by the engines that compute them" },
  { family: "roll/policy-loss", why: "losses are compared by the engines that compute them" },
  { family: "verl/value-loss", why: "no critic is trained" },
  { family: "roll/value-loss", why: "no critic is trained" },
  { family: "verl/entropy-loss", why: "losses are compared by the engines that compute them" },
  { family: "verl/rollout-correction", why: "old log-probabilities are those of the rollout" },
  { family: "roll/train-infer-correction", why: "old log-probabilities are those of the rollout" },
  { family: "roll/segment-mean", why: "no loss has a ratio by segment" },
  { family: "roll/advantage", named: "/distillation/", why: "there is no teacher" },
];
