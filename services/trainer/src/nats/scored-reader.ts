/** Reads the scored episodes of a run, in the order of the stream. */

import { create } from "@bufbuild/protobuf";
import { show } from "@hone/config";
import { describeError, Outcome, Split } from "@hone/core";
import {
  type Bus,
  decodeBytes,
  dropUnread,
  type KeptEpisodes,
  keepFinishedOf,
  MissingMessageError,
  outcomeFromWire,
  outcomeToWire,
  purgeEpisodes,
  readOrderedBodies,
  reportUnread,
  runsIn,
  StreamName,
  slotFromWire,
  streamRoom,
  subjects,
  translateBusError,
  wholeEpisode,
} from "@hone/messaging";
import {
  type Episode,
  EpisodeSchema,
  type ScoredEpisode,
  ScoredEpisodeSchema,
  type Turn,
  type Sample as WireSample,
  type ToolUse as WireToolUse,
} from "@hone/proto-gen/rollout";
import {
  BrokenRecordError,
  checkSample,
  clipReason,
  type Rollout,
  type Sample,
  sampledTokenCount,
  type ToolUse,
  TurnInfo,
  type TurnSpan,
  weightedSum,
} from "@hone/rl";
import { counterOf, Instrument, type Logger } from "@hone/telemetry";
import { JetStreamApiError } from "@nats-io/jetstream";
import type { EpisodeRoom, ScoredRollout, ScoredRollouts } from "../domain/rollouts/scored-rollout.ts";

/** The code of the error "no message found" in nats-server's server/errors.json. */
const NO_MESSAGE_FOUND = 10037;
/** The largest number that the ledger's column can store. */
const MAX_ATTEMPT = 2 ** 31 - 1;
/** At most this many different tools of one rollout are counted. */
const MAX_TOOL_USES = 256;
/** The name of a metric becomes a key of the step's metrics and is stored with every step, so its length is limited. */
const MAX_METRIC_CHARACTERS = 128;
const unreadRollouts = counterOf(Instrument.unreadRollouts);
const SPLITS: ReadonlySet<string> = new Set(Object.values(Split));

export class ScoredReader implements ScoredRollouts {
  readonly #bus: Bus;
  readonly #logger: Logger;
  readonly #purging = new Map<string, Promise<void>>();

  constructor(bus: Bus, logger: Logger) {
    this.#bus = bus;
    this.#logger = logger;
  }

  async *read(runId: string, fromSequence: number, signal: AbortSignal): AsyncGenerator<ScoredRollout> {
    const onError = (error: unknown) =>
      this.#logger.warn("reading episodes is interrupted", { runId, error });
    const ended = new AbortController();
    const untilEnded = AbortSignal.any([signal, ended.signal]);
    const kept = keepFinishedOf(this.#bus, runId, fromSequence, untilEnded, onError);
    const readBody = (data: Uint8Array, subject: string) => readEpisode(this.#bus, data, subject, kept);
    const items = readOrderedBodies(this.#bus, readBody, {
      stream: StreamName.episodes,
      filter: subjects.rolloutScored(runId),
      fromSequence,
      signal,
      onError,
    });
    try {
      for await (const { message, sequence, bytes, trace } of items) {
        const rollout = this.#decode(runId, message, sequence);
        const resumption = message.episode?.resumption ?? 0;
        const durationMs = durationOf(message);
        if (rollout !== undefined) yield { ...rollout, sequence, bytes, resumption, durationMs, trace };
      }
    } finally {
      ended.abort();
    }
  }

  async lastSequence(runId: string): Promise<number> {
    const subject = subjects.rolloutScored(runId);
    try {
      const message = await this.#bus.manager.streams.getMessage(StreamName.episodes, {
        last_by_subj: subject,
      });
      return message?.seq ?? 0;
    } catch (error) {
      if (error instanceof JetStreamApiError && error.code === NO_MESSAGE_FOUND) return 0;
      throw translateBusError(error, "look for the last episode", subject);
    }
  }

  room(): Promise<EpisodeRoom> {
    return streamRoom(this.#bus, StreamName.episodes);
  }

  runs(): Promise<string[]> {
    return runsIn(this.#bus, StreamName.episodes);
  }

  /** Only one purge of a run is under way at a time, because a second one would wait for the same answers. */
  async purgeBelow(runId: string, sequence: number): Promise<void> {
    let purging = this.#purging.get(runId);
    if (purging === undefined) {
      purging = this.#purge(runId, sequence).finally(() => this.#purging.delete(runId));
      this.#purging.set(runId, purging);
    }
    await purging;
  }

  async #purge(runId: string, sequence: number): Promise<void> {
    await purgeEpisodes(this.#bus, runId, sequence);
    const rollouts = await dropUnread(this.#bus, runId, sequence);
    if (rollouts === 0) return;
    unreadRollouts.of({}).add(rollouts);
    this.#logger.warn(
      "rollouts that the tracer had not read were dropped to make room for training: look at the tracer and its database",
      { runId, rollouts },
    );
    await reportUnread(this.#bus, runId, rollouts);
  }

  /**
   * An episode that contradicts itself counts as infra_failed, so it gives no reward and the run does not wait for it.
   * @returns undefined if the episode does not even say which rollout it belongs to.
   */
  #decode(runId: string, message: ScoredEpisode, sequence: number): Rollout | undefined {
    try {
      return decodeRollout(message, runId);
    } catch (error) {
      const reason = describeError(error);
      this.#logger.error("a scored episode is unusable", { runId, sequence, reason });
      const slot = message.episode?.slot;
      if (slot === undefined || !SPLITS.has(slot.split) || message.episode?.runId !== runId) return undefined;
      return {
        slot: slotFromWire(slot),
        attempt: 1,
        outcome: Outcome.infraFailed,
        reason,
        scores: [],
        samples: [],
        metrics: {},
        turnCount: 0,
      };
    }
  }
}

/**
 * Puts a scored episode together with the finished one. Where that is gone, which only a server that lost data brings about,
 * the rollout counts as infra_failed, so that the run does not wait for it.
 */
async function readEpisode(
  bus: Bus,
  data: Uint8Array,
  subject: string,
  kept: KeptEpisodes,
): Promise<{ message: ScoredEpisode; size: number }> {
  try {
    return await wholeEpisode(bus, data, subject, kept);
  } catch (error) {
    if (!(error instanceof MissingMessageError)) throw error;
    const { finished } = decodeBytes(ScoredEpisodeSchema, data, subject);
    const { runId = "", slot, attempt = 1, resumption = 0 } = finished ?? {};
    const reason = describeError(error);
    const outcome = outcomeToWire(Outcome.infraFailed);
    const episode = create(EpisodeSchema, {
      runId,
      ...(slot && { slot }),
      attempt,
      resumption,
      outcome,
      reason,
    });
    return { message: create(ScoredEpisodeSchema, { episode }), size: data.length };
  }
}

/** @throws {BrokenRecordError | TerminalError} with a message that says what is wrong with the episode. */
export function decodeRollout(message: ScoredEpisode, runId: string): Rollout {
  const { episode, scores } = message;
  if (episode === undefined) {
    throw new BrokenRecordError("a scored episode holds no episode");
  }
  if (episode.runId !== runId) {
    throw new BrokenRecordError(`a scored episode of run ${show(episode.runId)} came for run ${runId}`);
  }
  checkFigures(message, episode);
  const slot = slotFromWire(episode.slot);
  const samples = episode.samples.map((sample) => decodeSample(sample, slot.split === Split.warmStart));
  samples.forEach((sample, i) => {
    checkSample(sample, `sample ${i} of ${slot.split}.${slot.step}.${slot.task}.${slot.index}`);
  });
  return {
    slot,
    attempt: episode.attempt,
    outcome: outcomeFromWire(episode.outcome),
    ...(episode.reason !== "" && { reason: clipReason(episode.reason) }),
    ...(episode.toolUses.length > 0 && { toolUses: episode.toolUses.slice(0, MAX_TOOL_USES).map(toolUseOf) }),
    scores: scores.map(({ judge, weight, value, metrics, turnRewards, roles, roleValues }) => ({
      judge,
      weight,
      value,
      metrics: usableMetrics(metrics),
      ...(turnRewards.length > 0 && { turnRewards: turnRewards.map(({ turn, value }) => ({ turn, value })) }),
      ...(roles.length > 0 && { roles }),
      ...(Object.keys(roleValues).length > 0 && { roleValues }),
    })),
    samples,
    metrics: usableMetrics(episode.metrics),
    turnCount: episode.turns.length,
    turns: episode.turns.map((turn) => turnSpan(turn, samples)),
  };
}

/** @returns how long the last attempt took; 0 if the episode does not say it. */
function durationOf({ episode }: ScoredEpisode): number {
  const durationMs = episode?.durationMs ?? 0;
  return Number.isFinite(durationMs) ? Math.max(0, durationMs) : 0;
}

function toolUseOf({ name, calls, failed, error }: WireToolUse): ToolUse {
  return { name: clipReason(name), calls, failed, error: clipReason(error) };
}

function turnSpan(turn: Turn, samples: readonly Sample[]): TurnSpan {
  const { index, sample, sampledBegin, sampledEnd, infoJson } = turn;
  const tokenCount = samples[sample]?.tokenIds.length ?? 0;
  // The turns of a rollout on an external model have no tokens and no sample.
  if (sampledBegin > sampledEnd || sampledEnd > tokenCount) {
    throw new BrokenRecordError(
      `a scored episode has the tokens of turn ${index} at ${sampledBegin} to ${sampledEnd} of sample ${sample}; they must lie within its sample (${tokenCount} tokens)`,
    );
  }
  const state = stateOf(infoJson);
  return { sample, begin: sampledBegin, end: sampledEnd, ...(state !== undefined && { state }) };
}

/** @returns the state that an environment named; undefined if it named none, or if the text is not a JSON object. */
function stateOf(infoJson: string): string | undefined {
  if (!infoJson.includes(`"${TurnInfo.state}"`)) return undefined;
  try {
    const info: unknown = JSON.parse(infoJson);
    const state =
      typeof info === "object" && info !== null && TurnInfo.state in info ? info[TurnInfo.state] : undefined;
    return typeof state === "string" ? state : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Checks the numbers that rewards and the ledger use: a wrong one would spoil its group's advantages or its step's commit. */
function checkFigures({ scores }: ScoredEpisode, { attempt, turns }: Episode): void {
  if (attempt < 1 || attempt > MAX_ATTEMPT) {
    throw new BrokenRecordError(
      `a scored episode is numbered as attempt ${attempt}; attempts have numbers from 1 to ${MAX_ATTEMPT}`,
    );
  }
  const reward = weightedSum(scores);
  if (!Number.isFinite(reward)) {
    throw new BrokenRecordError(`the reward of a scored episode is ${reward}, which is not a finite number`);
  }
  for (const [role, value] of scores.flatMap(({ roleValues }) => Object.entries(roleValues))) {
    if (Number.isFinite(value)) continue;
    const problem = `a judge gave the role ${show(role)} the score ${value}, which is not a finite number`;
    throw new BrokenRecordError(problem);
  }
  for (const { turn, value } of scores.flatMap(({ turnRewards }) => turnRewards)) {
    if (turn >= turns.length) {
      throw new BrokenRecordError(`a judge rewarded turn ${turn} of an episode of ${turns.length} turns`);
    }
    if (!Number.isFinite(value)) {
      throw new BrokenRecordError(
        `a judge gave turn ${turn} the reward ${value}, which is not a finite number`,
      );
    }
  }
}

/** @returns the metrics of an agent or a judge that are finite numbers; the others are left out, and the rollout counts. */
function usableMetrics(metrics: Readonly<Record<string, number>>): Record<string, number> {
  const isUsable = ([name, value]: [string, number]) =>
    Number.isFinite(value) && name.length <= MAX_METRIC_CHARACTERS && !name.includes("\0");
  return Object.fromEntries(Object.entries(metrics).filter(isUsable));
}

/**
 * Copies the arrays out of the message: engines move them to other threads, and a view would move the whole message with it.
 * @param isScripted a scripted policy has no logprobs and no version, so its tokens get logprob 0 (certain) and version 0.
 */
function decodeSample(wire: WireSample, isScripted: boolean): Sample {
  const { tokenIds, lossMask, logprobs, versions, role } = wire;
  const sample: Sample = {
    tokenIds: Uint32Array.from(tokenIds),
    lossMask: Uint8Array.from(lossMask),
    logprobs: Float32Array.from(logprobs),
    versions: versions.map(({ version, tokenCount }) => ({ version, tokenCount })),
    ...(role !== "" && { role }),
  };
  if (!isScripted || logprobs.length > 0) return sample;
  const tokenCount = sampledTokenCount(sample);
  return { ...sample, logprobs: new Float32Array(tokenCount), versions: [{ version: 0, tokenCount }] };
}
