/** Answers `hone.v1.run.ledger.<run>` from the database. Any trainer may answer, also for a run that is over. */

import { create } from "@bufbuild/protobuf";
import { describeError } from "@hone/core";
import { type Bus, lastKeyOf, type Responder, respond, subjects } from "@hone/messaging";
import {
  type LedgerReply,
  LedgerReplySchema,
  type LedgerRequest,
  LedgerRequestSchema,
  type TokenRecord,
} from "@hone/proto-gen/ledger";
import type { ChainRow } from "@hone/rl";
import type { Logger } from "@hone/telemetry";

const QUEUE = "trainer";
/** Versions are of the database's type integer. */
const MAX_VERSION = 2 ** 31 - 1;
/** "<split>.<step>.<task>.<index>" */
const SLOT = /^(train|eval|warm)(\.\d{1,10}){3}$/;

export interface AnswerLedgerDeps {
  readonly readChain: (runId: string, from: number) => Promise<ChainAnswer>;
  /** One for each policy that learnt. */
  readonly readGradients: (runId: string, step: number) => Promise<readonly unknown[]>;
  readonly readTokens: (
    runId: string,
    slot: string,
  ) => Promise<{ readonly records: readonly TokenRecord[] } | { readonly absence: string }>;
  readonly logger: Logger;
}

interface ChainAnswer {
  readonly rows: readonly ChainRow[];
  readonly hasMore: boolean;
  readonly version: number | undefined;
  /** Undefined = there is no such run. */
  readonly configJson: string | undefined;
}

/** Starts to answer. */
export function answerLedger(bus: Bus, deps: AnswerLedgerDeps): Responder {
  return respond(bus, subjects.runLedger("*"), LedgerRequestSchema, LedgerReplySchema, {
    queue: QUEUE,
    handle: async ({ subject, message, reply }) => {
      await reply(await answer(lastKeyOf(subject), message, deps));
    },
    onError: (error, subject) => deps.logger.error("a request for the ledger failed", { subject, error }),
  });
}

async function answer(runId: string, { what }: LedgerRequest, deps: AnswerLedgerDeps): Promise<LedgerReply> {
  try {
    switch (what.case) {
      case "steps":
        return await chainReply(runId, what.value.from, deps);
      case "gradient":
        return await gradientReply(runId, what.value.step, deps);
      case "tokens":
        if (!SLOT.test(what.value.slot))
          return refusal(`"${what.value.slot}" is no rollout; one is named <split>.<step>.<task>.<index>`);
        return tokensReply(await deps.readTokens(runId, what.value.slot));
      default:
        return refusal("the request asks for nothing that this release knows: steps, a gradient or tokens");
    }
  } catch (error) {
    return refusal(describeError(error));
  }
}

async function chainReply(
  runId: string,
  from: number,
  { readChain }: AnswerLedgerDeps,
): Promise<LedgerReply> {
  if (from > MAX_VERSION) return refusal(`version ${from} is beyond ${MAX_VERSION}`);
  const { rows, hasMore, version, configJson } = await readChain(runId, from);
  if (configJson === undefined) return refusal(`there is no run "${runId}"; hone status lists the runs`);
  return create(LedgerReplySchema, {
    steps: rows.map(({ content, row, ...rest }) => ({ ...rest, contentDigest: content, rowDigest: row })),
    hasMore,
    runVersion: version ?? -1,
    ...(from === 0 && { configJson: withoutTokenizer(configJson) }),
  });
}

async function gradientReply(runId: string, step: number, deps: AnswerLedgerDeps): Promise<LedgerReply> {
  if (step > MAX_VERSION) return refusal(`step ${step} is beyond ${MAX_VERSION}`);
  const gradients = await deps.readGradients(runId, step);
  if (gradients.length > 0) {
    const gradientsJson = gradients.map((gradient) => JSON.stringify(gradient));
    return create(LedgerReplySchema, { gradientsJson });
  }
  const absence = `step ${step} of ${runId} has no record of its gradient: it is not committed, trained nothing, was committed by an earlier release, or the run has trainer.tokenRecord.tokensPerStep: 0`;
  return create(LedgerReplySchema, { absence });
}

function tokensReply(found: Awaited<ReturnType<AnswerLedgerDeps["readTokens"]>>): LedgerReply {
  return create(LedgerReplySchema, "records" in found ? { records: [...found.records] } : found);
}

/** The run file without the text of its tokenizer, which has megabytes and is compared by its digest. */
function withoutTokenizer(configJson: string): string {
  const config = JSON.parse(configJson) as { model?: { init?: Record<string, unknown> } };
  const init = config.model?.init;
  if (init === undefined) return configJson;
  return JSON.stringify({ ...config, model: { ...config.model, init: { ...init, tokenizer: "" } } });
}

function refusal(error: string): LedgerReply {
  return create(LedgerReplySchema, { error });
}
