/** Reads the ledger of a run from a trainer, row by row. */

import { create } from "@bufbuild/protobuf";
import { type Bus, BusUnavailableError, request, subjects } from "@hone/messaging";
import {
  type LedgerReply,
  LedgerReplySchema,
  LedgerRequestSchema,
  type StepRow,
} from "@hone/proto-gen/ledger";
import type { ChainRow } from "@hone/rl";
import { UsageError } from "../errors.ts";

/** Longer than a read of the database may take. */
const ANSWER_TIMEOUT_MS = 40_000;

/** What is known of a run beside its rows. */
export interface LedgerHead {
  readonly runId: string;
  /** The last version that the run has committed; -1 = none. */
  readonly version: number;
  /** The resolved run file. */
  readonly config: Readonly<Record<string, unknown>>;
}

export interface Ledger extends LedgerHead {
  /** In the order of their versions. */
  readonly rows: AsyncIterable<ChainRow>;
}

/** @throws {UsageError} where no trainer answers, or there is no such run. */
export async function readLedger(bus: Bus, runId: string, signal: AbortSignal): Promise<Ledger> {
  const first = await ask(bus, runId, 0, signal);
  const { runVersion: version, configJson } = first;
  return {
    runId,
    version,
    config: JSON.parse(configJson) as Record<string, unknown>,
    rows: rowsFrom(bus, runId, first, signal),
  };
}

async function* rowsFrom(
  bus: Bus,
  runId: string,
  first: LedgerReply,
  signal: AbortSignal,
): AsyncGenerator<ChainRow> {
  let reply = first;
  for (;;) {
    yield* reply.steps.map(rowOf);
    const last = reply.steps.at(-1);
    if (!reply.hasMore || last === undefined) return;
    reply = await ask(bus, runId, last.version + 1, signal);
  }
}

function rowOf({
  version,
  format,
  contentJson,
  restJson,
  previous,
  contentDigest,
  rowDigest,
}: StepRow): ChainRow {
  return { version, format, contentJson, restJson, previous, content: contentDigest, row: rowDigest };
}

async function ask(bus: Bus, runId: string, from: number, signal: AbortSignal): Promise<LedgerReply> {
  signal.throwIfAborted();
  const message = create(LedgerRequestSchema, { what: { case: "steps", value: { from } } });
  let reply: LedgerReply;
  try {
    reply = await request(bus, subjects.runLedger(runId), LedgerRequestSchema, message, LedgerReplySchema, {
      timeoutMs: ANSWER_TIMEOUT_MS,
      signal,
    });
  } catch (error) {
    if (!(error instanceof BusUnavailableError)) throw error;
    throw new UsageError("no trainer answers, which keeps the ledger; hone status shows the services", {
      cause: error,
    });
  }
  if (reply.error !== "") throw new UsageError(reply.error);
  return reply;
}
