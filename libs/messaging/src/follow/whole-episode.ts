/**
 * Puts scored episodes together with what they were scored from.
 *
 * A scored episode in the stream holds scores, and the position of the finished episode that they belong to. So the tokens
 * of an episode are stored once. A position may name another episode after the stream was started over (stream-reset.ts),
 * so what stands there is compared with what the judge has scored.
 */

import { create, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import {
  type Episode,
  EpisodeSchema,
  type FinishedEpisode,
  Outcome,
  type ScoredEpisode,
  ScoredEpisodeSchema,
} from "@hone/proto-gen/rollout";
import type { Bus } from "../bus.ts";
import { translateBusError, UndecodableMessageError } from "../errors.ts";
import { decodeBytes, fetchBody, type StoredMessage } from "../payloads/payload.ts";
import { StreamName } from "../streams/streams.ts";
import { lastKeyOf, subjects } from "../subjects.ts";
import type { KeptEpisodes } from "./kept-episodes.ts";
import { MissingMessageError } from "./read-messages.ts";
import type { ReadBody } from "./read-ordered.ts";

/** A scored episode with the episode that it belongs to. */
export interface WholeEpisode {
  /** Its `episode` is set, unless the message is wrong. */
  readonly message: ScoredEpisode;
  /** Size of what `encode` returns, without encoding it. */
  readonly size: number;
  /** @returns the message encoded, from the bytes as they came. */
  encode(): Uint8Array;
}

/**
 * @param data an encoded ScoredEpisode, as it stands in the stream.
 * @param kept finished episodes that were delivered already; one that is not there is requested.
 * @throws {MissingMessageError} when the stream does not hold the finished episode any more.
 * @throws {UndecodableMessageError} when `data` is no scored episode, or what it names is no episode.
 * @throws {BusUnavailableError} when the bus does not answer.
 */
export async function wholeEpisode(
  bus: Bus,
  data: Uint8Array,
  subject: string,
  kept?: KeptEpisodes,
): Promise<WholeEpisode> {
  const pointer = decodeBytes(ScoredEpisodeSchema, data, subject);
  const { finished, outcome, reason, scores, reward } = pointer;
  if (finished === undefined) return { message: pointer, size: data.length, encode: () => data };
  if (finished.runId !== lastKeyOf(subject)) {
    const other = finished.runId.slice(0, 80);
    throw new UndecodableMessageError(subject, `it points to an episode of another run (${other})`);
  }
  const { episode, bytes } = await readFinished(bus, finished, kept);
  if (outcome !== Outcome.UNSPECIFIED) episode.outcome = outcome;
  if (reason !== "") episode.reason = reason;
  return {
    message: create(ScoredEpisodeSchema, { episode, reward, scores }),
    size: data.length + bytes.length,
    encode: () => encodeWhole(pointer, bytes),
  };
}

/** {@link wholeEpisode} for functions that read a stream. */
export function episodeReader(bus: Bus): ReadBody<ScoredEpisode> {
  return (data, subject) => wholeEpisode(bus, data, subject);
}

/**
 * Encoded messages that follow each other are one message in which later fields win (protobuf's rules for decoders, "Last
 * One Wins"), so the episode's bytes are used as they are.
 */
function encodeWhole({ outcome, reason, scores, reward }: ScoredEpisode, episode: Uint8Array): Uint8Array {
  const judged = toBinary(EpisodeSchema, create(EpisodeSchema, { outcome, reason }));
  return new BinaryWriter()
    .raw(toBinary(ScoredEpisodeSchema, create(ScoredEpisodeSchema, { reward, scores })))
    .tag(ScoredEpisodeSchema.field.episode.number, WireType.LengthDelimited)
    .bytes(Buffer.concat([episode, judged]))
    .finish();
}

/** @returns a finished episode and its bytes. */
async function readFinished(
  bus: Bus,
  finished: FinishedEpisode,
  kept: KeptEpisodes | undefined,
): Promise<{ episode: Episode; bytes: Uint8Array }> {
  const position = Number(finished.position);
  const message = kept?.take(position) ?? (await messageAt(bus, position));
  const subject = subjects.rolloutFinished(finished.runId);
  if (message?.subject !== subject) throw new MissingMessageError(StreamName.episodes, position);
  const bytes = await fetchBody(bus, message);
  const episode = decodeBytes(EpisodeSchema, bytes, subject);
  if (!isThat(episode, finished)) throw new MissingMessageError(StreamName.episodes, position);
  return { episode, bytes };
}

async function messageAt(bus: Bus, seq: number): Promise<StoredMessage | undefined> {
  // No message has the position 0, and the server does not answer to it as to one that is gone.
  if (seq <= 0 || !Number.isSafeInteger(seq)) return undefined;
  try {
    const stored = await bus.manager.streams.getMessage(StreamName.episodes, { seq });
    return stored === null
      ? undefined
      : { subject: stored.subject, data: stored.data, headers: stored.header };
  } catch (error) {
    throw translateBusError(error, "read a finished episode", StreamName.episodes);
  }
}

function isThat(episode: Episode, { runId, slot, attempt, resumption }: FinishedEpisode): boolean {
  return (
    episode.runId === runId &&
    episode.attempt === attempt &&
    episode.resumption === resumption &&
    episode.slot?.split === slot?.split &&
    episode.slot?.step === slot?.step &&
    episode.slot?.task === slot?.task &&
    episode.slot?.index === slot?.index
  );
}
