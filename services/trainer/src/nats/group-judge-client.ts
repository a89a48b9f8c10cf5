/** Asks the judge to compare the rollouts of a group. */

import { create } from "@bufbuild/protobuf";
import { RetryableError } from "@hone/core";
import { type Bus, request, subjects } from "@hone/messaging";
import { GroupReplySchema, GroupRequestSchema } from "@hone/proto-gen/judge";
import type { GroupJudges, GroupToCompare, GroupVerdict } from "../domain/credit/group-judges.ts";

/** Time beyond the judges' own tries, for the pauses between them and for reading the episodes. */
const SLACK_MS = 30_000;

/** The judge cannot compare a group now. */
class JudgeNotReadyError extends RetryableError {
  constructor(reason: string) {
    super("JUDGE_NOT_READY", `the judge is not ready to compare a group: ${reason}`);
  }
}

export class GroupJudgeClient implements GroupJudges {
  readonly #bus: Bus;

  constructor(bus: Bus) {
    this.#bus = bus;
  }

  async compare({ runId, sequences, judges }: GroupToCompare, signal: AbortSignal): Promise<GroupVerdict> {
    const patienceMs = judges.reduce(
      (sum, { deadlineMs, maxAttempts }) => sum + deadlineMs * maxAttempts,
      SLACK_MS,
    );
    const reply = await request(
      this.#bus,
      subjects.judgeGroup(),
      GroupRequestSchema,
      create(GroupRequestSchema, {
        runId,
        sequences: sequences.map(BigInt),
        judgesJson: JSON.stringify(judges),
      }),
      GroupReplySchema,
      { timeoutMs: patienceMs, signal },
    );
    if (reply.error !== "") {
      if (reply.isRetryable) throw new JudgeNotReadyError(reply.error);
      return { kind: "failed", reason: reply.error };
    }
    if (reply.episodes.length !== sequences.length) {
      const reason = `the judge tells of ${reply.episodes.length} episodes where ${sequences.length} were asked for`;
      return { kind: "failed", reason };
    }
    return {
      kind: "scored",
      scores: reply.episodes.map(({ scores }) =>
        scores.map(({ judge, weight, value, metrics }) => ({ judge, weight, value, metrics })),
      ),
    };
  }
}
