/** Encodes the record of a rollout as an episode for the wire. */

import { create } from "@bufbuild/protobuf";
import type { RecordedTurn } from "@hone/agents";
import { outcomeToWire } from "@hone/messaging";
import {
  type Episode,
  EpisodeSchema,
  type Sample,
  SampleSchema,
  ToolUseSchema,
  type Turn,
  TurnSchema,
  VersionSpanSchema,
  type RolloutJob as WireJob,
} from "@hone/proto-gen/rollout";
import type { RolloutRecord } from "../domain/rollout-job.ts";

/** Longest prompt text that is kept with a turn; all token ids are kept. */
const MAX_PROMPT_BYTES = 8_192;

/** @param job the message that asked for the rollout; some of its fields are copied into the episode. */
export function encodeEpisode(job: WireJob, record: RolloutRecord): Episode {
  return create(EpisodeSchema, {
    runId: job.runId,
    attempt: record.attempt,
    outcome: outcomeToWire(record.outcome),
    reason: record.reason,
    samples: record.samples.map(encodeSample),
    turns: record.turns.map(encodeTurn),
    metrics: record.metrics,
    metadataJson: JSON.stringify(record.metadata),
    environmentReturn: record.environmentReturn,
    environmentState: record.environmentState ?? "",
    roleRewards: record.roleRewards ?? {},
    failedAttempts: [...record.failedAttempts],
    durationMs: record.durationMs,
    generationMs: record.generationMs,
    cursor: job.cursor,
    resumption: job.resumption,
    sessionKeyDigests: [...record.sessionKeyDigests],
    toolUses: record.toolUses.map((use) => create(ToolUseSchema, use)),
    ...(job.slot !== undefined && { slot: job.slot }),
    ...(job.task !== undefined && { task: job.task }),
  });
}

function encodeSample(sample: RolloutRecord["samples"][number]): Sample {
  return create(SampleSchema, {
    tokenIds: Array.from(sample.tokenIds),
    lossMask: sample.lossMask,
    logprobs: Array.from(sample.logprobs),
    versions: sample.versions.map((span) => create(VersionSpanSchema, span)),
    role: sample.role ?? "",
  });
}

function encodeTurn(turn: RecordedTurn): Turn {
  return create(TurnSchema, {
    index: turn.index,
    sample: turn.sample,
    sampledBegin: turn.sampledBegin,
    sampledEnd: turn.sampledEnd,
    promptText: clip(turn.promptText),
    responseText: turn.responseText,
    finishReason: turn.finishReason,
    infoJson: turn.info === undefined ? "{}" : JSON.stringify(turn.info),
    actions: (turn.actions ?? []).map((text) => (text === turn.responseText ? {} : { text })),
    ...(turn.reward !== undefined && { reward: turn.reward }),
  });
}

/** Cuts a text to the bytes that a turn may have, without splitting a character. */
function clip(text: string): string {
  if (text.length * 3 <= MAX_PROMPT_BYTES) return text;
  const bytes = Buffer.from(text);
  if (bytes.length <= MAX_PROMPT_BYTES) return text;
  let end = MAX_PROMPT_BYTES;
  // A byte 10xxxxxx continues a character that began before it.
  while (end > 0 && (bytes[end]! & 0xc0) === 0x80) end--;
  return bytes.toString("utf8", 0, end);
}
