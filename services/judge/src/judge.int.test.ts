import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import {
  BucketName,
  episodeReader,
  openBucket,
  publishBytes,
  publishStored,
  readOrderedBodies,
  request,
  StreamName,
  subjects,
  ValidatingService,
} from "@hone/messaging";
import { startBus, type TestBus } from "@hone/messaging/testing";
import {
  GroupReplySchema,
  GroupRequestSchema,
  ScoreReplySchema,
  ScoreRequestSchema,
} from "@hone/proto-gen/judge";
import { type Episode, EpisodeSchema, Outcome, ScoredEpisodeSchema } from "@hone/proto-gen/rollout";
import { RunStateSchema, ValidateReplySchema, ValidateRequestSchema } from "@hone/proto-gen/run";
import type { FinishReason } from "@hone/rl";
import { silentLogger } from "@hone/telemetry";
import { judgeParts } from "./domain/testing.ts";
import { type ConsumeEpisodesOptions, consumeEpisodes } from "./nats/consume-episodes.ts";
import { OpenRollouts } from "./nats/rewards/open-rollouts.ts";
import { RunPanels } from "./nats/run-panels.ts";
import { serveJudge } from "./nats/serve.ts";

const JUDGES = [
  { kind: "environment", weight: 1 },
  { kind: "format", weight: 0.5 },
];

interface Overrides {
  readonly runId?: string;
  readonly outcome?: Outcome;
  readonly reason?: string;
  readonly turns?: { index: number; finishReason?: FinishReason; infoJson?: string }[];
}

function episode(index: number, overrides: Overrides = {}): Episode {
  return create(EpisodeSchema, {
    runId: "run-1",
    slot: { split: "train", step: 3, task: 1, index },
    attempt: 1,
    outcome: Outcome.COMPLETED,
    environmentReturn: index,
    turns: [{ index: 0, finishReason: "stop", infoJson: '{"isValid":true}' }],
    samples: [{ tokenIds: [1, 2, 3], lossMask: new Uint8Array([0, 1, 1]), logprobs: [-0.5, -0.25] }],
    ...overrides,
  });
}

describe("judge on a real bus", { timeout: 60_000 }, () => {
  let bus: TestBus;
  let panels: RunPanels;
  let options: ConsumeEpisodesOptions;
  /** Publishes the state of a run, as the trainer does before the first job. */
  const publishRun = async (runId: string, judge: unknown = JUDGES) => {
    const states = await openBucket(bus, BucketName.runState, RunStateSchema);
    await states.put(runId, create(RunStateSchema, { runId, configJson: JSON.stringify({ judge }) }));
  };

  before(async () => {
    bus = await startBus();
    panels = await RunPanels.open(bus, judgeParts());
    const rollouts = await OpenRollouts.open(bus);
    const { signal } = new AbortController();
    options = { logger: silentLogger(), concurrency: 64, rollouts, signal };
    for (const run of ["run-1", "run-2", "run-3", "run-4", "run-9"]) await publishRun(run);
  });
  after(() => bus?.close());

  const scoredOf = (run: string, signal: AbortSignal) =>
    readOrderedBodies(bus, episodeReader(bus), {
      stream: StreamName.episodes,
      filter: subjects.rolloutScored(run),
      signal,
    });
  const finish = (message: Episode) =>
    publishStored(bus, subjects.rolloutFinished(message.runId), EpisodeSchema, message);
  const acknowledged = async () =>
    (await bus.manager.consumers.info(StreamName.episodes, "judge")).num_pending;

  test("publishes each finished episode once with its scores, even with several replicas", async () => {
    const replicas = [consumeEpisodes(bus, panels, options), consumeEpisodes(bus, panels, options)];
    const count = 200;
    await Promise.all(Array.from({ length: count }, (_, index) => finish(episode(index))));
    const stop = new AbortController();
    const rewards = new Map<number, number>();
    for await (const { message } of scoredOf("run-1", stop.signal)) {
      assert.ok(!rewards.has(message.episode!.slot!.index));
      rewards.set(message.episode!.slot!.index, message.reward);
      assert.deepEqual(
        message.scores.map((score) => score.judge),
        ["environment", "format"],
      );
      assert.deepEqual(message.episode!.samples[0]!.logprobs, [-0.5, -0.25]);
      if (rewards.size === count) break;
    }
    for (const [index, reward] of rewards) assert.equal(reward, index + 0.5);
    await Promise.all(replicas.map((replica) => replica.drain()));
    assert.equal(await acknowledged(), 0);
  });

  test("stores one scored episode for an attempt that is finished twice", async () => {
    const replica = consumeEpisodes(bus, panels, options);
    const twice = episode(0, { runId: "run-2" });
    await finish(twice);
    await finish(twice);
    await finish(episode(1, { runId: "run-2" }));
    const stop = new AbortController();
    const indices: number[] = [];
    for await (const { message } of scoredOf("run-2", stop.signal)) {
      indices.push(message.episode!.slot!.index);
      if (indices.includes(1)) break;
    }
    assert.deepEqual(indices.toSorted(), [0, 1]);
    await replica.drain();
  });

  test("publishes cancelled episodes without scores, and those whose judge fails as infra_failed", async () => {
    const replica = consumeEpisodes(bus, panels, options);
    const run = "run-3";
    await finish(episode(0, { runId: run, outcome: Outcome.CANCELLED, reason: "asked for" }));
    await finish(episode(1, { runId: run, turns: [{ index: 0, finishReason: "stop" }] }));
    const seen = new Map<number, { outcome: Outcome; reason: string; scores: number }>();
    for await (const { message } of scoredOf(run, new AbortController().signal)) {
      const { slot, outcome, reason } = message.episode!;
      seen.set(slot!.index, { outcome, reason, scores: message.scores.length });
      if (seen.size === 2) break;
    }
    assert.deepEqual(seen.get(0), { outcome: Outcome.CANCELLED, reason: "asked for", scores: 0 });
    assert.equal(seen.get(1)!.outcome, Outcome.INFRA_FAILED);
    assert.match(seen.get(1)!.reason, /the judge "format" failed/);
    await replica.drain();
  });

  test("takes a run's judges from the trainer and not from the episode, and judges nothing without judges or state", async () => {
    const replica = consumeEpisodes(bus, panels, options);
    const outcomeOf = async (runId: string) => {
      // Field 11 held judges in older versions, so the maker of an episode may try to write it.
      const own = Buffer.from(JSON.stringify([{ kind: "environment", weight: 1_000 }]));
      const forged = Buffer.concat([
        toBinary(EpisodeSchema, episode(2, { runId })),
        Buffer.of(90, own.length),
        own,
      ]);
      await publishBytes(bus, subjects.rolloutFinished(runId), forged, undefined);
      for await (const { message } of scoredOf(runId, new AbortController().signal)) return message;
      return assert.fail();
    };
    await publishRun("run-5", [{ kind: "environment", weight: 3 }]);
    await publishRun("run-6", []);
    assert.equal((await outcomeOf("run-5")).reward, 6);
    const none = await outcomeOf("run-6");
    assert.equal(none.episode!.outcome, Outcome.INFRA_FAILED);
    assert.match(none.episode!.reason, /`judge` is \[\]; it must be at least 1 entry long/);
    const unknown = await outcomeOf("run-7");
    assert.equal(unknown.episode!.outcome, Outcome.INFRA_FAILED);
    assert.match(unknown.episode!.reason, /published no state of its run run-7/);
    await replica.drain();
  });

  test("moves messages that name no rollout to the stream DEAD, and scores the next episode", async () => {
    const replica = consumeEpisodes(bus, panels, options);
    const run = "run-4";
    await publishBytes(bus, subjects.rolloutFinished(run), new Uint8Array([255, 255]), undefined);
    await publishStored(
      bus,
      subjects.rolloutFinished(run),
      EpisodeSchema,
      create(EpisodeSchema, { runId: run }),
    );
    await finish(episode(7, { runId: run }));
    for await (const { message } of scoredOf(run, new AbortController().signal)) {
      assert.equal(message.episode!.slot!.index, 7);
      break;
    }
    await replica.drain();
    assert.equal((await bus.manager.streams.info(StreamName.dead)).state.messages, 2);
  });

  test("scores stored episodes again on request, also with other judges", async () => {
    const responders = serveJudge(bus, panels, options);
    await bus.connection.flush();
    const ask = (judgesJson?: string) =>
      request(
        bus,
        subjects.judgeScore(),
        ScoreRequestSchema,
        create(ScoreRequestSchema, {
          episodes: [episode(4), episode(2)],
          ...(judgesJson === undefined ? {} : { judgesJson }),
        }),
        ScoreReplySchema,
        { timeoutMs: 5_000 },
      );
    assert.deepEqual(
      (await ask()).scored.map((scored) => scored.reward),
      [4.5, 2.5],
    );
    assert.deepEqual(
      (await ask('[{"kind":"format","weight":2}]')).scored.map((scored) => scored.reward),
      [2, 2],
    );
    const refused = await ask('[{"kind":"formt"}]');
    assert.match(refused.error, /did you mean `format`/);
    assert.equal(refused.isRetryable, false);
    await Promise.all(responders.map((responder) => responder.drain()));
  });

  test("names the key of an unknown judge", async () => {
    const responders = serveJudge(bus, panels, options);
    await bus.connection.flush();
    const validate = (judge: unknown) =>
      request(
        bus,
        subjects.validate(ValidatingService.judge),
        ValidateRequestSchema,
        create(ValidateRequestSchema, { configJson: JSON.stringify({ judge }) }),
        ValidateReplySchema,
        { timeoutMs: 5_000 },
      );
    assert.deepEqual((await validate([{ kind: "environment", weight: 1 }])).problems, []);
    const { problems } = await validate([{ kind: "environment" }, { kind: "exakt", weight: 1 }]);
    assert.equal(problems.length, 1);
    assert.equal(problems[0]!.key, "judge[1].kind");
    assert.equal(problems[0]!.valueJson, '"exakt"');
    assert.match(problems[0]!.allowed, /one of "environment", "format", "exact"/);
    assert.match(problems[0]!.message, /did you mean `exact`/);
    await Promise.all(responders.map((responder) => responder.drain()));
  });

  test("compares the stored episodes of a group by one model call", async () => {
    let calls = 0;
    const server = createServer((_request, response) => {
      calls++;
      response.end(JSON.stringify({ choices: [{ message: { content: "Ranking: 1 = 2 = 3" } }] }));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const responders = serveJudge(bus, panels, options);
    await bus.connection.flush();
    const run = "run-9";
    const stored = await Promise.all(
      [0, 1, 2].map((index) =>
        publishStored(
          bus,
          subjects.rolloutScored(run),
          ScoredEpisodeSchema,
          create(ScoredEpisodeSchema, { episode: episode(index, { runId: run }) }),
        ),
      ),
    );
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    const judges = [{ kind: "environment" }, { kind: "group", weight: 2, baseUrl, model: "m", rubric: "r" }];
    const ask = (runId: string, sequences: readonly number[]) =>
      request(
        bus,
        subjects.judgeGroup(),
        GroupRequestSchema,
        create(GroupRequestSchema, {
          runId,
          sequences: sequences.map(BigInt),
          judgesJson: JSON.stringify(judges),
        }),
        GroupReplySchema,
        { timeoutMs: 10_000 },
      );
    const sequences = stored.map(({ sequence }) => sequence);
    const { episodes, error } = await ask(run, sequences);
    assert.equal(error, "");
    assert.deepEqual(
      episodes.map(({ scores }) => scores.map(({ judge, weight, value }) => [judge, weight, value])),
      [[["group", 2, 0.5]], [["group", 2, 0.5]], [["group", 2, 0.5]]],
    );
    assert.equal(calls, 1);
    assert.match((await ask("run-8", sequences)).error, /must be of one task of run-8/);
    const gone = await ask(run, [...sequences, 1_000_000]);
    assert.match(gone.error, /no message at position 1000000/);
    assert.equal(gone.isRetryable, false);
    await Promise.all(responders.map((responder) => responder.drain()));
    server.closeAllConnections();
    server.close();
  });
});
