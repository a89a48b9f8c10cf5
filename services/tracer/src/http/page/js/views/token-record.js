/** What the ledger says of trained tokens: the rows that the card of a selected token shows. */

import { ApiError, read } from "../api.js";
import { number, percent, signed } from "../format.js";

/** What cut a token, in words. */
const CUTS = {
  none: "not cut",
  clip_low: "at the lower clip",
  clip_high: "at the upper clip",
  dual_clip: "at the dual clip",
  mask: "left out by the loss",
  selected: "chosen by the loss",
  bound: "at the bound of the weight",
  rejected: "rejected by the correction",
};

/** Reads the record of a rollout and hands each token its own, from when it is there; nothing where none is kept. */
export async function attachRecords(runId, rollout, signal) {
  let record;
  try {
    record = await read(
      `/runs/${encodeURIComponent(runId)}/rollouts/${encodeURIComponent(rollout.slot)}/tokens`,
      { signal },
    );
  } catch (error) {
    // Not recorded, or no trainer answers: the tokens are shown without it.
    if (signal.aborted || error instanceof ApiError) return;
    throw error;
  }
  const ofSamples = new Map();
  for (const token of record.tokens) {
    if (!ofSamples.has(token.sample)) ofSamples.set(token.sample, []);
    ofSamples.get(token.sample).push(token);
  }
  for (const { sample, tokens } of [...rollout.turns, ...rollout.tails]) {
    for (const token of tokens) if (token.isSampled) token.record = ofSamples.get(sample)?.shift();
  }
}

/** The rows of a token's record. */
export function recordRows(record) {
  const last = record.passes.at(-1);
  const { parts } = record;
  return [
    last && ["logprob when trained", number(last.logprob, 4)],
    record.referenceLogprob !== null && ["logprob of the reference", number(record.referenceLogprob, 4)],
    last && ["ratio", number(last.ratio, 4)],
    last && ["cut", CUTS[last.cut] ?? last.cut],
    ["advantage: episode", signed(parts.episode, 3)],
    parts.turns !== 0 && ["advantage: turns", signed(parts.turns, 3)],
    parts.kl !== 0 && ["advantage: KL", signed(parts.kl, 3)],
    parts.taught !== 0 && ["advantage: teachers", signed(parts.taught, 3)],
    parts.mean !== null && ["compared with", number(parts.mean, 4)],
    parts.scale !== null && ["divided by", number(parts.scale, 4)],
    ["weight in the loss", number(record.weight, 6)],
    last && ["d loss / d logprob", number(last.coefficient, 6)],
    ["share of the step's gradient", percent(record.share, 3)],
  ].filter(Boolean);
}
