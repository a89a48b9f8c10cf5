/** Asks a trainer for what its ledger says of a run. */

import { create } from "@bufbuild/protobuf";
import { unreachable } from "@hone/core";
import { type Bus, BusUnavailableError, request, subjects } from "@hone/messaging";
import { LedgerReplySchema, type LedgerRequest, LedgerRequestSchema } from "@hone/proto-gen/ledger";
import type { AskLedger, LedgerQuestion } from "../domain/token-figures.ts";

/** Longer than a read of the database may take. */
const TIMEOUT_MS = 40_000;

export function askLedger(bus: Bus): AskLedger {
  return async function ask(runId, question) {
    const message = messageOf(question);
    try {
      return await request(bus, subjects.runLedger(runId), LedgerRequestSchema, message, LedgerReplySchema, {
        timeoutMs: TIMEOUT_MS,
      });
    } catch (error) {
      if (error instanceof BusUnavailableError) return undefined;
      throw error;
    }
  };
}

function messageOf(question: LedgerQuestion): LedgerRequest {
  switch (question.kind) {
    case "gradient":
      return create(LedgerRequestSchema, { what: { case: "gradient", value: { step: question.step } } });
    case "tokens":
      return create(LedgerRequestSchema, { what: { case: "tokens", value: { slot: question.slot } } });
    default:
      return unreachable(question);
  }
}
