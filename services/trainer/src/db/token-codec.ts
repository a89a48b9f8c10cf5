/** The record of a rollout's trained tokens as it is stored and sent: hone.ledger.v1.TokenRecord. */

import { create, fromBinary } from "@bufbuild/protobuf";
import { slotKey } from "@hone/core";
import { type TokenRecord, TokenRecordSchema } from "@hone/proto-gen/ledger";
import { TokenCut } from "@hone/rl";
import type { RolloutTokens, TokenColumn, TokenPass } from "../domain/record/rollout-tokens.ts";

const CUT_NAMES = Object.values(TokenCut);

/** @param policy that learnt from them; undefined = the run's own. */
export function encodeTokens(
  tokens: RolloutTokens,
  { version, policy }: { readonly version: number; readonly policy: string | undefined },
): TokenRecord {
  const {
    slot,
    role = "",
    reward,
    shapedReward,
    whitening,
    clip,
    sampleTokens,
    tokenIds,
    positions,
  } = tokens;
  return create(TokenRecordSchema, {
    slot: slotKey(slot),
    role,
    policy: policy ?? "",
    version,
    reward,
    shapedReward,
    whiteningMean: whitening?.mean ?? 0,
    whiteningScale: whitening?.scale ?? 0,
    advantageClip: clip ?? 0,
    sampleTokens: [...sampleTokens],
    tokenIds: [...tokenIds],
    positions: [...positions],
    behaviourLogprobs: [...tokens.behaviourLogprobs],
    oldLogprobs: [...(tokens.oldLogprobs ?? [])],
    referenceLogprobs: [...(tokens.referenceLogprobs ?? [])],
    advantages: listOf(tokens.advantages),
    episodeParts: listOf(tokens.episode),
    turnParts: listOf(tokens.turns),
    klParts: listOf(tokens.kl),
    taughtParts: listOf(tokens.taught),
    means: listOf(tokens.mean),
    scales: listOf(tokens.scale),
    weights: listOf(tokens.weights),
    corrections: listOf(tokens.corrections),
    passes: tokens.passes.map(encodePass),
  });
}

/** @throws where the bytes are no record. */
export function decodeTokens(bytes: Uint8Array): TokenRecord {
  return fromBinary(TokenRecordSchema, bytes);
}

function encodePass({ epoch, minibatch, cuts, ...columns }: TokenPass) {
  return {
    epoch,
    minibatch,
    logprobs: [...columns.logprobs],
    ratios: [...columns.ratios],
    coefficients: [...columns.coefficients],
    klCoefficients: [...(columns.klCoefficients ?? [])],
    pulls: [...columns.pulls],
    cuts: Uint8Array.from(cuts, (cut) => CUT_NAMES.indexOf(cut)),
    cutNames: CUT_NAMES,
  };
}

function listOf(column: TokenColumn | undefined): number[] {
  if (column === undefined) return [];
  return typeof column === "number" ? [column] : [...column];
}
