import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { type Episode, EpisodeSchema, ScoredEpisodeSchema } from "@hone/proto-gen/rollout";
import { eventually } from "@hone/testing";
import { makeDurables, publishStored, StreamName, subjects } from "../index.ts";
import { startBus, type TestBus } from "../testing.ts";
import { KeptEpisodes, keepFinished, keepFinishedOf } from "./kept-episodes.ts";
import { MissingMessageError } from "./read-messages.ts";
import { wholeEpisode } from "./whole-episode.ts";

const RUN = "lake-1";

const episodeOf = (index: number, runId = RUN): Episode =>
  create(EpisodeSchema, {
    runId,
    slot: { split: "train", step: 0, task: 0, index },
    attempt: 1,
    metadataJson: JSON.stringify({ text: "x".repeat(1_000) }),
  });

describe("KeptEpisodes", () => {
  const bodyOf = (bytes: number) => ({ subject: subjects.rolloutFinished(RUN), data: new Uint8Array(bytes) });

  test("gives each episode once, and drops the oldest where there is no space for another", () => {
    const kept = new KeptEpisodes(4_000);
    for (const position of [1, 2, 3]) kept.keep(position, bodyOf(1_200));
    assert.equal(kept.take(1), undefined);
    assert.equal(kept.take(2)?.data.length, 1_200);
    assert.equal(kept.take(2), undefined);
    kept.keep(4, bodyOf(1_200));
    assert.ok(kept.take(3), "taking one made space");
    kept.keep(5, bodyOf(1_000_000));
    assert.deepEqual(
      [kept.take(4), kept.take(5)],
      [undefined, undefined],
      "one that is larger than all space",
    );
  });

  test("does not hold the buffer that an episode came in", () => {
    const received = new Uint8Array(100_000);
    const kept = new KeptEpisodes();
    kept.keep(1, { subject: subjects.rolloutFinished(RUN), data: Buffer.from(received.buffer, 10, 10) });
    assert.equal(kept.take(1)?.data.buffer.byteLength, 10);
  });
});

describe("finished episodes that are kept", { timeout: 60_000 }, () => {
  let bus: TestBus;
  let requests = 0;
  before(async () => {
    bus = await startBus();
    await makeDurables(bus);
    bus.connection.subscribe(`$JS.API.STREAM.MSG.GET.${StreamName.episodes}`, {
      callback: () => {
        requests++;
      },
    });
  });
  after(() => bus?.close());

  let ending: AbortController;
  beforeEach(() => {
    ending = new AbortController();
    requests = 0;
  });
  afterEach(() => ending.abort());

  const finish = async (episode: Episode) =>
    (await publishStored(bus, subjects.rolloutFinished(episode.runId), EpisodeSchema, episode)).sequence;
  const read = async (kept: KeptEpisodes, episode: Episode, position: number) => {
    const { runId, slot, attempt, resumption } = episode;
    const finished = { position: BigInt(position), runId, ...(slot && { slot }), attempt, resumption };
    const data = toBinary(ScoredEpisodeSchema, create(ScoredEpisodeSchema, { finished }));
    return (await wholeEpisode(bus, data, subjects.rolloutScored(runId), kept)).message.episode;
  };
  const fail = (error: unknown) => assert.fail(String(error));

  for (const [name, start] of [
    ["of one run", (from: number) => keepFinishedOf(bus, RUN, from, ending.signal, fail)],
    ["of all runs", () => keepFinished(bus, ending.signal, fail)],
  ] as const) {
    test(`need no request of their own: ${name}`, async () => {
      const [before, later] = [episodeOf(0), episodeOf(1)];
      const early = await finish(before);
      const kept = start(early + 1);
      const position = await finish(later);
      await eventually("delivered", () => {
        const body = kept.take(position);
        if (body !== undefined) kept.keep(position, body);
        return body !== undefined;
      });
      assert.deepEqual(await read(kept, later, position), later);
      assert.equal(requests, 0);
      // Read once more, it is requested, as is one that was never delivered here.
      assert.deepEqual(await read(kept, later, position), later);
      assert.deepEqual(await read(new KeptEpisodes(), before, early), before);
      assert.equal(requests, 2);
    });
  }

  test("are compared with what was scored, like those that are requested", async () => {
    const kept = new KeptEpisodes();
    const [one, other] = [episodeOf(2), episodeOf(3)];
    for (const [position, body] of [
      [7, { subject: subjects.rolloutFinished(RUN), data: toBinary(EpisodeSchema, other) }],
      [8, { subject: subjects.rolloutScored(RUN), data: toBinary(EpisodeSchema, one) }],
    ] as const) {
      kept.keep(position, body);
      await assert.rejects(read(kept, one, position), MissingMessageError, `position ${position}`);
    }
  });
});
