/** The conformance table: the rows that answer golden cases, and those that engines answer. */

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
import { rollDistillationRows } from "./rows/roll-distillation.ts";
import { rollPipelineRows } from "./rows/roll-pipeline.ts";
import { verlCorrectionRows } from "./rows/verl-correction.ts";
import { verlGroupRows } from "./rows/verl-groups.ts";
import { verlTokenRows } from "./rows/verl-tokens.ts";

export const ROWS: readonly Row[] = [
  ...verlGroupRows,
  ...verlTokenRows,
  ...rollAdvantageRows,
  ...rollDistillationRows,
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
