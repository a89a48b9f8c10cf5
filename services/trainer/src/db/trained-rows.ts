/** Rows of the ledger, one for each trained rollout. */

import { slotKey } from "@hone/core";
import { rolloutDigests, rolloutTokenCount, versionRange } from "@hone/rl";
import type { Commit } from "../domain/step/ledger.ts";
import type { ledger } from "./schema.ts";

type Columns = (typeof ledger)["_"]["columns"];
type NameOf<K extends keyof Columns> = Columns[K]["_"]["name"];

/** Keyed by column names, as PostgreSQL reads it from JSON: a bytea is its text. */
export type TrainedRow = {
  readonly [K in keyof Columns as NameOf<K>]: Columns[K]["_"]["data"] extends Uint8Array
    ? Columns[K]["_"]["notNull"] extends true
      ? string
      : string | null
    : Columns[K]["_"]["notNull"] extends true
      ? Columns[K]["_"]["data"]
      : Columns[K]["_"]["data"] | null;
};

/** A row of the ledger, keyed by column names. */
export function trainedRow(
  commit: Commit,
  { rollout, reward, advantage, turnAdvantages, tokenAdvantages, returns }: Commit["trained"][number],
): TrainedRow {
  const versions = versionRange(rollout);
  const digests = rolloutDigests(rollout.samples);
  return {
    run_id: commit.runId,
    slot: slotKey(rollout.slot),
    role: rollout.role ?? "",
    version: commit.version,
    attempt: rollout.attempt,
    outcome: rollout.outcome,
    sample_count: rollout.samples.length,
    sampled_tokens: rolloutTokenCount(rollout),
    lowest_version: versions?.lowest ?? null,
    highest_version: versions?.highest ?? null,
    reward,
    advantage,
    sequence: rollout.sequence,
    state_digest: commit.stateDigest,
    turn_advantages: turnAdvantages === undefined ? null : [...turnAdvantages],
    token_advantages: tokenAdvantages === undefined ? null : toBytes(tokenAdvantages),
    token_returns: returns === undefined ? null : toBytes(returns),
    prompt_digest: digests.prompt,
    tokens_digest: digests.tokens,
    logprobs_digest: digests.logprobs,
  };
}

/** As float32, which is what engines are given: the text of a bytea. */
function toBytes(values: Float64Array): string {
  const bytes = Buffer.alloc(values.length * Float32Array.BYTES_PER_ELEMENT);
  values.forEach((value, index) => {
    bytes.writeFloatLE(value, index * Float32Array.BYTES_PER_ELEMENT);
  });
  return `\\x${bytes.toString("hex")}`;
}

/** The float32 numbers of a bytea. */
export function fromBytes(bytes: Uint8Array): Float64Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Float64Array.from({ length: bytes.length / Float32Array.BYTES_PER_ELEMENT }, (_, index) =>
    view.getFloat32(index * Float32Array.BYTES_PER_ELEMENT, true),
  );
}
