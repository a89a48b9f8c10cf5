/**
 * The rows of steps as a chain (libs/rl/src/ledger/chain.ts): written with the commit, and read with both of a row's texts made
 * anew from the tables, so that whoever checks them finds what was changed there.
 */

import { compareSlots, parseSlotKey, slotKey } from "@hone/core";
import {
  type ChainedRollout,
  type ChainRow,
  canonicalJson,
  digestsOf,
  type StepContent,
  sha256,
} from "@hone/rl";
import { and, asc, type Database, eq, gte, type Queryable, query } from "@hone/storage";
import type { Commit } from "../domain/step/ledger.ts";
import { type ChainColumns, ledger, runs, steps } from "./schema.ts";
import type { TrainedRow } from "./trained-rows.ts";

/** Rows of one answer: text up to about this size, and at least one. */
const MAX_TEXT = 8 * 2 ** 20;
/** Steps that are read at once. */
const STEPS_AT_ONCE = 16;

/** What the chain says of a step, before it is a text. */
interface Linked {
  readonly runId: string;
  readonly version: number;
  readonly epoch: number;
  readonly metrics: Readonly<Record<string, number>>;
  readonly troubles: unknown;
  readonly chain: Omit<ChainColumns, "format" | "previous" | "contentDigest" | "rowDigest">;
  readonly trained: readonly TrainedRow[];
}

/** The link of a commit's row, within its transaction: nobody else commits a version of this run meanwhile. */
export async function linkOf(
  tx: Queryable,
  commit: Commit,
  trained: readonly TrainedRow[],
): Promise<ChainColumns> {
  const { runId, version, epoch, metrics, troubles } = commit;
  const chain = {
    ...commit.identity,
    arithmetic: commit.arithmetic,
    before: commit.weightsBefore,
    after: commit.stateDigest,
    files: commit.stateFiles,
    leftOut: commit.leftOut.map(({ slot, ...rest }) => ({ slot: slotKey(slot), ...rest })),
  };
  const [last] = await tx
    .select({ chain: steps.chain })
    .from(steps)
    .where(and(eq(steps.runId, runId), eq(steps.version, version - 1)));
  const texts = textsOf({ runId, version, epoch, metrics, troubles: troubles ?? null, chain, trained });
  const digests = digestsOf(texts.contentJson, texts.restJson, last?.chain?.rowDigest ?? "");
  return {
    format: digests.format,
    previous: digests.previous,
    contentDigest: digests.content,
    rowDigest: digests.row,
    ...chain,
  };
}

/** What a reader gets. */
export interface ChainPage {
  readonly rows: readonly ChainRow[];
  readonly hasMore: boolean;
  /** The last version that the run has committed; undefined before the first, or where there is no such run. */
  readonly version: number | undefined;
  /** The run file as it was accepted; undefined = there is no such run. */
  readonly configJson: string | undefined;
}

/** Rows of a run from a version on. */
export async function readChain(database: Database, runId: string, from: number): Promise<ChainPage> {
  const action = `read the ledger of ${runId}`;
  const [run] = await query(
    database,
    (db) =>
      db
        .select({ version: runs.version, configJson: runs.configJson })
        .from(runs)
        .where(eq(runs.runId, runId)),
    { action, isRepeatable: true },
  );
  const found = await query(
    database,
    (db) =>
      db
        .select()
        .from(steps)
        .where(and(eq(steps.runId, runId), gte(steps.version, from)))
        .orderBy(asc(steps.version))
        .limit(STEPS_AT_ONCE + 1),
    { action, isRepeatable: true },
  );
  const rows: ChainRow[] = [];
  let size = 0;
  for (const step of found.slice(0, STEPS_AT_ONCE)) {
    if (rows.length > 0 && size > MAX_TEXT) break;
    const row = await chainRow(database, step, action);
    size += row.contentJson.length + row.restJson.length;
    rows.push(row);
  }
  return {
    rows,
    hasMore: rows.length < found.length,
    version: run?.version ?? undefined,
    configJson: run?.configJson,
  };
}

async function chainRow(
  database: Database,
  { chain, ...step }: typeof steps.$inferSelect,
  action: string,
): Promise<ChainRow> {
  const { runId, version } = step;
  if (chain === null) {
    return { version, format: 0, previous: "", content: "", row: "", contentJson: "", restJson: "" };
  }
  const found = await query(
    database,
    (db) =>
      db
        .select()
        .from(ledger)
        .where(and(eq(ledger.runId, runId), eq(ledger.version, version))),
    { action, isRepeatable: true },
  );
  const { format, previous, contentDigest: content, rowDigest: row, ...linked } = chain;
  const texts = textsOf({ ...step, chain: linked, trained: found.map(asTrainedRow) });
  return { version, format, previous, content, row, ...texts };
}

function textsOf({ runId, version, epoch, metrics, troubles, chain, trained }: Linked): {
  readonly contentJson: string;
  readonly restJson: string;
} {
  const { files, leftOut, ...content } = chain;
  const rows = [...trained].sort(
    (a, b) => compareSlots(parseSlotKey(a.slot), parseSlotKey(b.slot)) || (a.role < b.role ? -1 : 1),
  );
  const whole: StepContent = {
    version,
    ...content,
    trained: rows.map(chainedRollout),
    leftOut: leftOut.map(({ slot, outcome, why }) => ({ slot, outcome, why })),
  };
  const rest = {
    runId,
    epoch,
    metrics,
    troubles,
    files,
    trained: rows.map((row) => [placeOf(row), row.attempt, row.sequence, row.state_digest]),
    leftOut: leftOut.map(({ slot, attempt, reason }) => [slot, attempt, reason]),
  };
  return { contentJson: canonicalJson(whole), restJson: canonicalJson(rest) };
}

/** A rollout, or the part of it that a role played. */
function placeOf({ slot, role }: Pick<TrainedRow, "slot" | "role">): string {
  return role === "" ? slot : `${slot}/${role}`;
}

function chainedRollout(row: TrainedRow): ChainedRollout {
  return {
    slot: placeOf(row),
    outcome: row.outcome,
    reward: row.reward,
    advantage: row.advantage,
    turnAdvantages: row.turn_advantages,
    tokenAdvantages: digestOfBytes(row.token_advantages),
    tokenReturns: digestOfBytes(row.token_returns),
    sampleCount: row.sample_count,
    sampledTokens: row.sampled_tokens,
    lowestVersion: row.lowest_version,
    highestVersion: row.highest_version,
    prompt: row.prompt_digest ?? "",
    tokens: row.tokens_digest ?? "",
    logprobs: row.logprobs_digest ?? "",
  };
}

/** @param text of a bytea, as PostgreSQL writes it. */
function digestOfBytes(text: string | null): string {
  return text === null ? "" : sha256(Buffer.from(text.slice(2), "hex"));
}

/** A row that was read, as it was when it was written. */
function asTrainedRow(row: typeof ledger.$inferSelect): TrainedRow {
  const textOf = (bytes: Uint8Array | null) =>
    bytes === null ? null : `\\x${Buffer.from(bytes).toString("hex")}`;
  return {
    run_id: row.runId,
    slot: row.slot,
    role: row.role,
    version: row.version,
    attempt: row.attempt,
    outcome: row.outcome,
    sample_count: row.sampleCount,
    sampled_tokens: row.sampledTokens,
    lowest_version: row.lowestVersion,
    highest_version: row.highestVersion,
    reward: row.reward,
    advantage: row.advantage,
    sequence: row.sequence,
    state_digest: row.stateDigest,
    turn_advantages: row.turnAdvantages,
    token_advantages: textOf(row.tokenAdvantages),
    token_returns: textOf(row.tokenReturns),
    prompt_digest: row.promptDigest,
    tokens_digest: row.tokensDigest,
    logprobs_digest: row.logprobsDigest,
  };
}
