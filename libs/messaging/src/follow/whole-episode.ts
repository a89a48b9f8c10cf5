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
  type EpisodeIdentity,
  EpisodeIdentitySchema,
  EpisodeSchema,
  type FinishedEpisode,
  ScoredEpisodeSchema,
} from "@hone/proto-gen/rollout";
import type { Bus } from "../bus.ts";
import { translateBusError, UndecodableMessageError } from "../errors.ts";
import { decodeBytes, fetchBody } from "../payloads/payload.ts";
import { StreamName } from "../streams/streams.ts";
import { lastKeyOf, subjects } from "../subjects.ts";
import type { KeptEpisodes, StoredBody } from "./kept-episodes.ts";
import { MissingMessageError } from "./read-messages.ts";

/**
 * Gives a scored episode as one message with its episode.
 *
 * Encoded messages that follow each other are one message in which later fields win (protobuf's rules for decoders, "Last
 * One Wins"), so the episode's bytes are used as they are.
 * @param data an encoded ScoredEpisode, as it stands in the stream.
 * @param kept finished episodes that were delivered already; one that is not there is requested.
 * @returns an encoded ScoredEpisode whose `episode` is set; `data` itself if it is set there already.
 * @throws {MissingMessageError} when the stream does not hold the finished episode any more.
 * @throws {UndecodableMessageError} when `data` is no scored episode, or what it names is no episode.
 * @throws {BusUnavailableError} when the bus does not answer.
 */
export async function wholeEpisode(
  bus: Bus,
  data: Uint8Array,
  subject: string,
  kept?: KeptEpisodes,
): Promise<Uint8Array> {
  const { finished, outcome, reason, scores, reward } = decodeBytes(ScoredEpisodeSchema, data, subject);
  if (finished === undefined) return data;
  if (finished.runId !== lastKeyOf(subject)) {
    const other = finished.runId.slice(0, 80);
    throw new UndecodableMessageError(subject, `it points to an episode of another run (${other})`);
  }
  const episode = await readFinished(bus, finished, kept);
  const judged = toBinary(EpisodeSchema, create(EpisodeSchema, { outcome, reason }));
  return new BinaryWriter()
    .raw(toBinary(ScoredEpisodeSchema, create(ScoredEpisodeSchema, { reward, scores })))
    .tag(ScoredEpisodeSchema.field.episode.number, WireType.LengthDelimited)
    .bytes(Buffer.concat([episode, judged]))
    .finish();
}

/** @returns the bytes of a finished episode. */
async function readFinished(
  bus: Bus,
  finished: FinishedEpisode,
  kept: KeptEpisodes | undefined,
): Promise<Uint8Array> {
  const position = Number(finished.position);
  const message = kept?.take(position) ?? (await messageAt(bus, position));
  const subject = subjects.rolloutFinished(finished.runId);
  if (message?.subject !== subject) throw new MissingMessageError(StreamName.episodes, position);
  const data = await fetchBody(bus, message);
  if (!isThat(decodeBytes(EpisodeIdentitySchema, data, subject, IDENTITY_ONLY), finished)) {
    throw new MissingMessageError(StreamName.episodes, position);
  }
  return data;
}

async function messageAt(bus: Bus, seq: number): Promise<StoredBody | undefined> {
  // No message has the position 0, and the server does not answer to it as to one that is gone.
  if (seq <= 0 || !Number.isSafeInteger(seq)) return undefined;
  const { direct, streams } = bus.manager;
  try {
    // Any server that has a copy answers this, with the bytes as they are.
    const message = await direct.getMessage(StreamName.episodes, { seq });
    // In a cluster that copy may be a moment behind; the stream's leader is not.
    const stored = message ?? (await streams.getMessage(StreamName.episodes, { seq }));
    return stored === null
      ? undefined
      : { subject: stored.subject, data: stored.data, headers: stored.header };
  } catch (error) {
    throw translateBusError(error, "read a finished episode", StreamName.episodes);
  }
}

/** Skips all other fields of an episode, tokens included. */
const IDENTITY_ONLY = { readUnknownFields: false };

function isThat(episode: EpisodeIdentity, { runId, slot, attempt, resumption }: FinishedEpisode): boolean {
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
