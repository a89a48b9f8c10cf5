/** The conformance table: the rows that answer golden cases, those that engines answer, and the families that no row answers yet. */

import { klLossRows } from "./losses/kl-losses.ts";
import type { LossRow } from "./losses/loss-row.ts";
import { rollLossRows } from "./losses/roll-losses.ts";
import { valueLossRows } from "./losses/value-losses.ts";
import { verlLossRows } from "./losses/verl-losses.ts";
import type { Row } from "./row.ts";
import { aggregationRows } from "./rows/aggregation.ts";
import { rewardRows } from "./rows/rewards.ts";
import { rollAdvantageRows } from "./rows/roll-advantages.ts";
import { rollCorrectionRows } from "./rows/roll-correction.ts";
import { rollPipelineRows } from "./rows/roll-pipeline.ts";
import { verlCorrectionRows } from "./rows/verl-correction.ts";
import { verlGroupRows } from "./rows/verl-groups.ts";
import { verlTokenRows } from "./rows/verl-tokens.ts";

export const ROWS: readonly Row[] = [
  ...verlGroupRows,
  ...verlTokenRows,
  ...rollAdvantageRows,
  ...rollPipelineRows,
  ...rewardRows,
  ...aggregationRows,
  ...verlCorrectionRows,
  ...rollCorrectionRows,
];

/** Rows whose numbers engines compute: libs/train answers all of them with its graphs, and services/trainer with PyTorch. */
export const LOSS_ROWS: readonly LossRow[] = [
  ...verlLossRows,
  ...rollLossRows,
  ...valueLossRows,
  ...klLossRows,
];

/** Families of cases that no row answers, and why. A case that neither this nor the rows claim fails the test. */
export const NOT_YET: readonly (Pick<Row, "family" | "functions" | "named"> & { readonly why: string })[] = [
  { family: "roll/advantage", named: "/distillation/", why: "there is no teacher" },
];
