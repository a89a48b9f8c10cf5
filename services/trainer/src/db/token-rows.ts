/**
 * The records of trained tokens: written with the commit of their step, so that a trainer that is killed neither loses nor
 * doubles one, and removed step by step, the oldest first, once those of a run take too much room.
 */

import { toBinary } from "@bufbuild/protobuf";
import { slotKey } from "@hone/core";
import { type TokenRecord, TokenRecordSchema } from "@hone/proto-gen/ledger";
import { and, type Database, eq, type Queryable, query, sql } from "@hone/storage";
import type { StepGradient, StepTokens } from "../domain/record/rollout-tokens.ts";
import { gradients, ledger, tokenRecords } from "./schema.ts";
import { decodeTokens, encodeTokens } from "./token-codec.ts";

/** Writes what a step recorded, within the transaction of its commit. */
export async function insertTokens(
  tx: Queryable,
  runId: string,
  version: number,
  { gradient, rollouts, maxBytes }: StepTokens,
): Promise<void> {
  const rows = rollouts.map((tokens) => ({
    slot: slotKey(tokens.slot),
    record: toBinary(TokenRecordSchema, encodeTokens(tokens, version)),
  }));
  const bytes = rows.reduce((sum, { record }) => sum + record.length, 0);
  await tx.insert(gradients).values({ runId, version, summary: gradient, bytes });
  if (rows.length > 0) {
    const text = JSON.stringify(
      rows.map(({ slot, record }) => ({
        run_id: runId,
        slot,
        version,
        record: `\\x${Buffer.from(record).toString("hex")}`,
      })),
    );
    await tx.execute(
      sql`insert into token_records select * from json_populate_recordset(null::token_records, ${text}::json)`,
    );
  }
  await removeOldest(tx, runId, maxBytes);
}

/** Removes the records of the oldest steps until the others fit; what the steps' gradients were made of stays. */
async function removeOldest(tx: Queryable, runId: string, maxBytes: number): Promise<void> {
  await tx.execute(sql`
    with sized as (
      select version, sum(bytes) over (order by version desc) as total
      from gradients where run_id = ${runId} and bytes > 0
    ), emptied as (
      update gradients set bytes = 0 from sized
      where gradients.run_id = ${runId} and gradients.version = sized.version and sized.total > ${maxBytes}
      returning gradients.version
    )
    delete from token_records using emptied
    where token_records.run_id = ${runId} and token_records.version = emptied.version`);
}

/** What made the gradient of a step; undefined = it is not recorded. */
export async function readGradient(
  database: Database,
  runId: string,
  version: number,
): Promise<StepGradient | undefined> {
  const [row] = await query(
    database,
    (db) =>
      db
        .select({ summary: gradients.summary })
        .from(gradients)
        .where(and(eq(gradients.runId, runId), eq(gradients.version, version))),
    { action: `read the gradient of step ${version} of ${runId}`, isRepeatable: true },
  );
  return row?.summary;
}

/** The trained tokens of a rollout, or why there are none, as a sentence. */
export async function readTokens(
  database: Database,
  runId: string,
  slot: string,
): Promise<{ readonly tokens: TokenRecord } | { readonly absence: string }> {
  const action = `read the trained tokens of ${runId}/${slot}`;
  const [found] = await query(
    database,
    (db) =>
      db
        .select({ record: tokenRecords.record })
        .from(tokenRecords)
        .where(and(eq(tokenRecords.runId, runId), eq(tokenRecords.slot, slot))),
    { action, isRepeatable: true },
  );
  if (found !== undefined) return { tokens: decodeTokens(found.record) };
  const [trained] = await query(
    database,
    (db) =>
      db
        .select({ version: ledger.version, bytes: gradients.bytes, advantage: ledger.advantage })
        .from(ledger)
        .leftJoin(gradients, and(eq(gradients.runId, ledger.runId), eq(gradients.version, ledger.version)))
        .where(and(eq(ledger.runId, runId), eq(ledger.slot, slot))),
    { action, isRepeatable: true },
  );
  return { absence: absenceOf(`rollout ${slot} of ${runId}`, trained) };
}

function absenceOf(
  rollout: string,
  trained:
    | { readonly version: number; readonly bytes: number | null; readonly advantage: number }
    | undefined,
): string {
  if (trained === undefined) return `${rollout} was not trained by any step`;
  const { version, bytes } = trained;
  if (bytes === null) {
    return `step ${version} recorded no tokens: it was committed by an earlier release, imitated the rollout, or the run names roles or has trainer.tokenRecord.tokensPerStep: 0`;
  }
  if (bytes === 0) {
    return `the tokens of ${rollout} are not recorded: no update trained one of step ${version}, or its records were removed when those of the run took more than trainer.tokenRecord.maxBytes`;
  }
  return `the tokens of ${rollout} are not recorded: all their advantages are 0, so that no update trained them, or step ${version} had more tokens than trainer.tokenRecord.tokensPerStep`;
}
