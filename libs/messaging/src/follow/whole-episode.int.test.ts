import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type Episode,
  EpisodeSchema,
  Outcome,
  type ScoredEpisode,
  ScoredEpisodeSchema,
} from "@hone/proto-gen/rollout";
import { startNats } from "@hone/testing";
import {
  type Bus,
  connectBus,
  ensureTopology,
  publishStored,
  purgeEpisodes,
  StreamName,
  subjects,
  UndecodableMessageError,
} from "../index.ts";
import { MissingMessageError } from "./read-messages.ts";
import { wholeEpisode } from "./whole-episode.ts";

const RUN = "lake-1";

function episodeOf(
  index: number,
  more: Partial<Pick<Episode, "runId" | "attempt" | "resumption" | "metadataJson">> = {},
): Episode {
  return create(EpisodeSchema, {
    runId: RUN,
    slot: { split: "train", step: 3, task: 1, index },
    attempt: 1,
    resumption: 0,
    outcome: Outcome.COMPLETED,
    samples: [{ tokenIds: [1, 2, 300], lossMask: Uint8Array.of(0, 1, 1), logprobs: [-0.5, -0.25] }],
    turns: [{ index: 0, responseText: "Right" }],
    metrics: { success: 1 },
    ...more,
  });
}

describe("wholeEpisode()", { timeout: 60_000 }, () => {
  let nats: Awaited<ReturnType<typeof startNats>>;
  let bus: Bus;
  before(async () => {
    nats = await startNats();
    bus = await connectBus({ url: nats.url, name: "test" });
    await ensureTopology(bus);
  });
  after(async () => {
    await bus.close();
    await nats.stop();
  });

  const finish = async (episode: Episode) =>
    (await publishStored(bus, subjects.rolloutFinished(episode.runId), EpisodeSchema, episode)).sequence;
  const pointerTo = (
    { runId, slot, attempt, resumption }: Episode,
    position: number,
    more: Partial<Pick<ScoredEpisode, "outcome" | "reason">> = {},
  ) => {
    const finished = { position: BigInt(position), runId, ...(slot && { slot }), attempt, resumption };
    return create(ScoredEpisodeSchema, {
      finished,
      reward: 1,
      scores: [{ judge: "format", value: 1 }],
      ...more,
    });
  };
  const whole = async (scored: ScoredEpisode) => {
    const data = toBinary(ScoredEpisodeSchema, scored);
    const { message, encode } = await wholeEpisode(bus, data, subjects.rolloutScored(RUN));
    const encoded = fromBinary(ScoredEpisodeSchema, encode());
    assert.deepEqual(toBinary(ScoredEpisodeSchema, encoded), toBinary(ScoredEpisodeSchema, message));
    return encoded;
  };

  test("gives the scores with the episode that they point to", async () => {
    const episode = episodeOf(0);
    const scored = pointerTo(episode, await finish(episode));
    assert.deepEqual(
      await whole(scored),
      create(ScoredEpisodeSchema, { episode, reward: scored.reward, scores: scored.scores }),
    );
  });

  test("gives the outcome that the judge left, and all else as it was finished", async () => {
    const episode = episodeOf(1);
    const verdict = { outcome: Outcome.INFRA_FAILED, reason: "the judge failed" };
    const { episode: judged } = await whole(pointerTo(episode, await finish(episode), verdict));
    assert.deepEqual(judged, create(EpisodeSchema, { ...episode, ...verdict }));
  });

  test("reads an episode that is larger than a message of the bus", async () => {
    const episode = episodeOf(2, { metadataJson: JSON.stringify({ text: "x".repeat(2_000_000) }) });
    const { episode: read } = await whole(pointerTo(episode, await finish(episode)));
    assert.equal(read?.metadataJson.length, episode.metadataJson.length);
    assert.deepEqual(read?.samples, episode.samples);
  });

  test("gives a scored episode that holds its episode as it is", async () => {
    const data = toBinary(
      ScoredEpisodeSchema,
      create(ScoredEpisodeSchema, { episode: episodeOf(3), reward: 2 }),
    );
    const { message, encode } = await wholeEpisode(bus, data, subjects.rolloutScored(RUN));
    assert.deepEqual(message.episode, episodeOf(3));
    assert.equal(encode(), data);
  });

  test("refuses a position that holds nothing, another subject's message or another episode", async () => {
    const episode = episodeOf(4);
    const position = await finish(episode);
    const scored = pointerTo(episode, position);
    const { sequence } = await publishStored(bus, subjects.rolloutScored(RUN), ScoredEpisodeSchema, scored);
    for (const wrong of [0, sequence, 1_000_000]) {
      await assert.rejects(whole(pointerTo(episode, wrong)), MissingMessageError, `position ${wrong}`);
    }
    for (const other of [episodeOf(5), episodeOf(4, { attempt: 2 }), episodeOf(4, { resumption: 1 })]) {
      await assert.rejects(whole(pointerTo(other, position)), MissingMessageError);
    }
    const ofAnotherRun = pointerTo(episodeOf(4, { runId: "lake-2" }), position);
    await assert.rejects(whole(ofAnotherRun), UndecodableMessageError);
  });

  test("refuses bytes that are no scored episode", async () => {
    await assert.rejects(
      wholeEpisode(bus, Uint8Array.of(0xff, 0xff), subjects.rolloutScored(RUN)),
      UndecodableMessageError,
    );
  });

  test("a purge keeps the finished episodes that remaining scored ones point to, in whatever order they were scored", async () => {
    const run = "order-1";
    const episodes = [0, 1, 2].map((index) => episodeOf(index, { runId: run }));
    const [first = 0, second = 0, third = 0] = [
      await finish(episodes[0]!),
      await finish(episodes[1]!),
      await finish(episodes[2]!),
    ];
    const score = (index: number, position: number) =>
      publishStored(
        bus,
        subjects.rolloutScored(run),
        ScoredEpisodeSchema,
        pointerTo(episodes[index]!, position),
      );
    await score(2, third);
    const { sequence: needed } = await score(1, second);
    await score(0, first);
    const isThere = async (seq: number) =>
      (await bus.manager.streams.getMessage(StreamName.episodes, { seq })) !== null;

    assert.equal(await purgeEpisodes(bus, run, needed), 1, "the scored episode before the needed one");
    assert.deepEqual([await isThere(first), await isThere(second), await isThere(third)], [true, true, true]);
    assert.equal(
      await purgeEpisodes(bus, run, needed + 1),
      1,
      "the second scored; the first finished is needed",
    );
    assert.ok(await isThere(first));
    assert.equal(await purgeEpisodes(bus, run, needed + 2), 4, "all that is left");
  });
});
