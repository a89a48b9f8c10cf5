/**
 * The records of trained tokens: written with the commit of their step, so that a trainer that is killed neither loses nor
 * doubles one, and removed step by step, the oldest first, once those of a run take too much room.
 */

import { toBinary } from "@bufbuild/protobuf";
import { slotKey } from "@hone/core";
import { type TokenRecord, TokenRecordSchema } from "@hone/proto-gen/ledger";
import { and, type Database, eq, type Queryable, query, sql } from "@hone/storage";
import type { PolicyTokens, StepGradient } from "../domain/record/rollout-tokens.ts";
import { gradients, ledger, tokenRecords } from "./schema.ts";
import { decodeTokens, encodeTokens } from "./token-codec.ts";

/** Writes what a step recorded of each policy that learnt, within the transaction of its commit. */
export async function insertTokens(
  tx: Queryable,
  runId: string,
  version: number,
  recorded: readonly PolicyTokens[],
): Promise<void> {
  for (const { policy, gradient, rollouts } of recorded) {
    const rows = rollouts.map((tokens) => ({
      slot: slotKey(tokens.slot),
      role: tokens.role ?? "",
      record: toBinary(TokenRecordSchema, encodeTokens(tokens, { version, policy })),
    }));
    const bytes = rows.reduce((sum, { record }) => sum + record.length, 0);
    await tx.insert(gradients).values({ runId, version, policy: policy ?? "", summary: gradient, bytes });
    if (rows.length === 0) continue;
    const text = JSON.stringify(
      rows.map(({ slot, role, record }) => ({
        run_id: runId,
        slot,
        role,
        version,
        record: `\\x${Buffer.from(record).toString("hex")}`,
      })),
    );
    await tx.execute(
      sql`insert into token_records select * from json_populate_recordset(null::token_records, ${text}::json)`,
    );
  }
  const [first] = recorded;
  if (first !== undefined) await removeOldest(tx, runId, first.maxBytes);
}

/** Removes the records of the oldest steps until the others fit; what the steps' gradients were made of stays. */
async function removeOldest(tx: Queryable, runId: string, maxBytes: number): Promise<void> {
  await tx.execute(sql`
    with sized as (
      select version, sum(sum(bytes)) over (order by version desc) as total
      from gradients where run_id = ${runId} and bytes > 0 group by version
    ), emptied as (
      update gradients set bytes = 0 from sized
      where gradients.run_id = ${runId} and gradients.version = sized.version and sized.total > ${maxBytes}
      returning gradients.version
    )
    delete from token_records using emptied
    where token_records.run_id = ${runId} and token_records.version = emptied.version`);
}

/** What made the gradient of each policy in a step, the run's own first; empty = it is not recorded. */
export async function readGradients(
  database: Database,
  runId: string,
  version: number,
): Promise<(StepGradient & { readonly policy: string })[]> {
  const rows = await query(
    database,
    (db) =>
      db
        .select({ policy: gradients.policy, summary: gradients.summary })
        .from(gradients)
        .where(and(eq(gradients.runId, runId), eq(gradients.version, version)))
        .orderBy(gradients.policy),
    { action: `read the gradient of step ${version} of ${runId}`, isRepeatable: true },
  );
  return rows.map(({ policy, summary }) => ({ policy, ...summary }));
}

/** The trained tokens of a rollout, one record for each role that played a part of it, or why there are none, as a sentence. */
export async function readTokens(
  database: Database,
  runId: string,
  slot: string,
): Promise<{ readonly records: readonly TokenRecord[] } | { readonly absence: string }> {
  const action = `read the trained tokens of ${runId}/${slot}`;
  const found = await query(
    database,
    (db) =>
      db
        .select({ record: tokenRecords.record })
        .from(tokenRecords)
        .where(and(eq(tokenRecords.runId, runId), eq(tokenRecords.slot, slot)))
        .orderBy(tokenRecords.role),
    { action, isRepeatable: true },
  );
  if (found.length > 0) return { records: found.map(({ record }) => decodeTokens(record)) };
  const [trained] = await query(
    database,
    (db) =>
      db
        .select({
          version: ledger.version,
          bytes: sql<number | null>`sum(${gradients.bytes})`.mapWith((sum) =>
            sum === null ? null : Number(sum),
          ),
        })
        .from(ledger)
        .leftJoin(gradients, and(eq(gradients.runId, ledger.runId), eq(gradients.version, ledger.version)))
        .where(and(eq(ledger.runId, runId), eq(ledger.slot, slot)))
        .groupBy(ledger.version),
    { action, isRepeatable: true },
  );
  return { absence: absenceOf(`rollout ${slot} of ${runId}`, trained) };
}

function absenceOf(
  rollout: string,
  trained: { readonly version: number; readonly bytes: number | null } | undefined,
): string {
  if (trained === undefined) return `${rollout} was not trained by any step`;
  const { version, bytes } = trained;
  if (bytes === null) {
    return `step ${version} recorded no tokens: it was committed by an earlier release, imitated the rollout, or the run has trainer.tokenRecord.tokensPerStep: 0`;
  }
  if (bytes === 0) {
    return `the tokens of ${rollout} are not recorded: no update trained one of step ${version}, or its records were removed when those of the run took more than trainer.tokenRecord.maxBytes`;
  }
  return `the tokens of ${rollout} are not recorded: all their advantages are 0, so that no update trained them, or step ${version} had more tokens than trainer.tokenRecord.tokensPerStep`;
}
