/** Rewards that come after a rollout has ended, on a real bus, with judges that come and go. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  BucketName,
  busTimeMs,
  dropRewards,
  episodeReader,
  openBucket,
  openRewardsOf,
  publishStored,
  purgeEpisodes,
  RewardGiver,
  readOrderedBodies,
  request,
  runsWithRewards,
  StreamName,
  subjects,
} from "@hone/messaging";
import { startBus, type TestBus } from "@hone/messaging/testing";
import {
  GivenRewardSchema,
  type RewardReply,
  RewardReplySchema,
  RewardRequestSchema,
  RewardResult,
} from "@hone/proto-gen/judge";
import { EpisodeSchema, Outcome, type ScoredEpisode } from "@hone/proto-gen/rollout";
import { RunStateSchema } from "@hone/proto-gen/run";
import { silentLogger } from "@hone/telemetry";
import { eventually } from "@hone/testing";
import { judgeParts } from "./domain/testing.ts";
import { consumeEpisodes } from "./nats/consume-episodes.ts";
import { keepDeadlines } from "./nats/rewards/keep-deadlines.ts";
import { OpenRollouts } from "./nats/rewards/open-rollouts.ts";
import { RunPanels } from "./nats/run-panels.ts";
import { serveJudge } from "./nats/serve.ts";

/** What differs between episodes. */
interface Changes {
  readonly slot?: { split: string; step: number; task: number; index: number };
  readonly attempt?: number;
  readonly resumption?: number;
  readonly outcome?: Outcome;
  readonly reason?: string;
  readonly turns?: { index: number; finishReason: string; responseText: string }[];
}

const HOUR_MS = 3_600_000;
const KEY = "hone-the-key-of-the-session";
const logger = silentLogger();
const digestOf = (key: string) => createHash("sha256").update(key).digest();

describe("rewards that come later", { timeout: 120_000 }, () => {
  let bus: TestBus;
  before(async () => {
    bus = await startBus();
  });
  after(() => bus?.close());

  /** Publishes the state of a run whose judges wait for rewards. */
  const startRun = async (
    runId: string,
    judge: readonly object[] = [{ kind: "later" }],
    rewardDeadlineMs = HOUR_MS,
    agent: object = { name: "a", config: { rewards: "session" } },
  ) => {
    const states = await openBucket(bus, BucketName.runState, RunStateSchema);
    const configJson = JSON.stringify({ judge, agent, dataset: {}, rollout: { rewardDeadlineMs } });
    await states.put(runId, create(RunStateSchema, { runId, configJson }));
  };
  const finish = (runId: string, index: number, changes: Changes = {}) =>
    publishStored(
      bus,
      subjects.rolloutFinished(runId),
      EpisodeSchema,
      create(EpisodeSchema, {
        runId,
        slot: { split: "train", step: 1, task: 0, index },
        attempt: 1,
        outcome: Outcome.COMPLETED,
        environmentReturn: 0.5,
        turns: [{ index: 0, finishReason: "stop", responseText: "4" }],
        sessionKeyDigests: [digestOf(KEY)],
        ...changes,
      }),
    );
  const give = (
    runId: string,
    index: number,
    value: number,
    { judge = "", key, split = "train" }: { judge?: string; key?: string; split?: string } = {},
  ): Promise<RewardReply> =>
    request(
      bus,
      subjects.judgeReward(key === undefined ? RewardGiver.client : RewardGiver.session),
      RewardRequestSchema,
      create(RewardRequestSchema, {
        runId,
        slot: { split, step: 1, task: 0, index },
        judge,
        value,
        ...(key !== undefined && { keyDigest: digestOf(key) }),
      }),
      RewardReplySchema,
      { timeoutMs: 5_000 },
    );
  const isOpen = async (runId: string, count: number) =>
    (await openRewardsOf(bus, runId)).rollouts.length === count;
  /** The scored episodes of a run, by the index of their slot. */
  const scoredOf = async (runId: string, count: number): Promise<ScoredEpisode[]> => {
    const found: ScoredEpisode[] = [];
    const items = readOrderedBodies(bus, episodeReader(bus), {
      stream: StreamName.episodes,
      filter: subjects.rolloutScored(runId),
      signal: AbortSignal.timeout(20_000),
    });
    for await (const { message } of items) if (found.push(message) === count) break;
    assert.equal(found.length, count);
    return found.sort((a, b) => (a.episode?.slot?.index ?? 0) - (b.episode?.slot?.index ?? 0));
  };
  /** A judge, as its service starts it. `kill` ends it without letting it finish anything. */
  const startJudge = async () => {
    const stopping = new AbortController();
    const { signal } = stopping;
    const panels = await RunPanels.open(bus, judgeParts());
    const rollouts = await OpenRollouts.open(bus);
    const responders = serveJudge(bus, panels, { logger, rollouts, signal });
    const consumer = consumeEpisodes(bus, panels, { logger, concurrency: 64, rollouts, signal });
    const keeping = keepDeadlines(bus, rollouts, { logger, signal });
    return {
      rollouts,
      async [Symbol.asyncDispose]() {
        await consumer.stop();
        await Promise.all(responders.map((responder) => responder.drain()));
        stopping.abort();
        await keeping;
      },
    };
  };

  test("an episode is scored once its reward has come, and the answers say what happened to each request", async () => {
    await using _judge = await startJudge();
    await using _other = await startJudge();
    const run = "later-1";
    await startRun(run);
    await finish(run, 0);
    await eventually("the episode to wait", () => isOpen(run, 1));
    assert.equal((await bus.manager.consumers.info(StreamName.episodes, "judge")).num_ack_pending, 0);
    assert.equal((await give(run, 1, 1)).result, RewardResult.NOT_OPEN);
    assert.equal((await give(run, 0, Number.NaN)).result, RewardResult.INVALID);
    assert.match((await give(run, 0, 1, { judge: "taste" })).error, /the rollout's are later/);
    const answers = await Promise.all([1, 1, 1, 1].map((value) => give(run, 0, value)));
    const results = answers.map(({ result }) => result).sort();
    const { TAKEN, REPEATED, STANDS } = RewardResult;
    assert.deepEqual(results, [TAKEN, REPEATED, REPEATED, REPEATED]);
    const [scored] = await scoredOf(run, 1);
    assert.deepEqual([scored?.reward, scored?.episode?.outcome], [1, Outcome.COMPLETED]);
    await eventually("the entry to go", () => isOpen(run, 0));
    assert.equal((await give(run, 0, 1)).result, REPEATED, "also after the episode was scored");
    const other = await give(run, 0, 0);
    assert.deepEqual([other.result, other.standing?.value], [STANDS, 1]);
    assert.match(other.error, /was given 1 before, which stands/);
  });

  test("scores stand in the order of the run file, whenever they came, and each judge has its own reward", async () => {
    await using _judge = await startJudge();
    const run = "later-2";
    const people = { kind: "later", name: "people", weight: 2 };
    const sale = { kind: "later", name: "sale", weight: 0.25 };
    await startRun(run, [
      people,
      { kind: "environment" },
      sale,
      { kind: "exact", weight: 0, dataSources: ["x"] },
    ]);
    await finish(run, 0);
    await eventually("the episode to wait", () => isOpen(run, 1));
    assert.match((await give(run, 0, 1)).error, /say for which judge .* people, sale/);
    assert.deepEqual((await give(run, 0, 4, { judge: "sale" })).awaited, ["people"]);
    assert.deepEqual((await give(run, 0, 3, { judge: "people" })).awaited, []);
    const [scored] = await scoredOf(run, 1);
    assert.deepEqual(
      scored?.scores.map(({ judge, value }) => [judge, value]),
      [
        ["people", 3],
        ["environment", 0.5],
        ["sale", 4],
      ],
    );
    assert.equal(scored?.reward, 7.5);
  });

  test("without a reward in time an episode is left out with the reason, or gets the default that its run states", async () => {
    await using _judge = await startJudge();
    await using _other = await startJudge();
    await startRun("later-3", [{ kind: "later" }], 1_000);
    await startRun("later-4", [{ kind: "later", default: -1 }], 1_000);
    await finish("later-3", 0);
    await finish("later-4", 0);
    const [left] = await scoredOf("later-3", 1);
    assert.equal(left?.episode?.outcome, Outcome.INFRA_FAILED);
    assert.match(left?.episode?.reason ?? "", /no reward for the judge "later" came within 1000 ms/);
    const [fallback] = await scoredOf("later-4", 1);
    assert.deepEqual([fallback?.reward, fallback?.scores[0]?.metrics], [-1, { given: 0 }]);
    for (const run of ["later-3", "later-4"]) {
      await eventually("the entry to go", () => isOpen(run, 0));
      assert.equal((await give(run, 0, 1)).result, RewardResult.EXPIRED);
    }
  });

  test("a deadline that passes while no judge lives ends the wait once one is back, and not before by a wrong clock", async (t) => {
    const run = "later-5";
    await startRun(run, [{ kind: "later" }], 2_000);
    {
      await using _judge = await startJudge();
      await finish(run, 0);
      await eventually("the episode to wait", () => isOpen(run, 1));
    }
    t.mock.timers.enable({ apis: ["Date"], now: Date.now() + 24 * HOUR_MS });
    await using _next = await startJudge();
    const [open] = (await openRewardsOf(bus, run)).rollouts;
    assert.ok(open !== undefined);
    const [scored] = await scoredOf(run, 1);
    assert.equal(scored?.episode?.outcome, Outcome.INFRA_FAILED);
    assert.ok(
      (await busTimeMs(bus)) >= Number(open.sinceMs) + 2_000,
      "not before the time of the bus says so",
    );
  });

  test("a judge that died between a reward and its publication loses nothing", async () => {
    const run = "later-6";
    await startRun(run);
    {
      await using judge = await startJudge();
      await finish(run, 0);
      await eventually("the episode to wait", () => isOpen(run, 1));
      const found = await judge.rollouts.find(run, { split: "train", step: 1, task: 0, index: 0 });
      assert.ok(found !== undefined);
      // What a judge has done when it dies right after it stored the reward.
      const reward = create(GivenRewardSchema, { judge: "later", value: 0.75 });
      await judge.rollouts.change(found.entry, { rewards: [reward] });
    }
    await using _next = await startJudge();
    assert.equal((await give(run, 0, 0.75)).result, RewardResult.REPEATED);
    assert.equal((await scoredOf(run, 1))[0]?.reward, 0.75);
  });

  test("a session gives rewards by its key, and only where the run file says so", async () => {
    await using _judge = await startJudge();
    await startRun("later-7");
    await startRun("later-8", undefined, undefined, { name: "a", config: {} });
    await finish("later-7", 0);
    await finish("later-8", 0);
    await eventually("both to wait", async () => (await isOpen("later-7", 1)) && isOpen("later-8", 1));
    assert.equal((await give("later-7", 0, 1, { key: "another" })).result, RewardResult.WRONG_KEY);
    assert.equal((await give("later-8", 0, 1, { key: KEY })).result, RewardResult.NOT_ALLOWED);
    const taken = await give("later-7", 0, 1, { key: KEY });
    assert.deepEqual([taken.result, taken.standing?.givenBy], [RewardResult.TAKEN, "session"]);
    assert.equal((await give("later-8", 0, 1)).result, RewardResult.TAKEN);
  });

  test("the same rollout made again keeps its rewards, and another one asks for new ones", async () => {
    await using _judge = await startJudge();
    const run = "later-9";
    await startRun(run);
    await finish(run, 0);
    await eventually("the episode to wait", () => isOpen(run, 1));
    assert.equal((await give(run, 0, 1)).result, RewardResult.TAKEN);
    await eventually("the entry to go", () => isOpen(run, 0));
    await finish(run, 0, { attempt: 2 });
    const both = await scoredOf(run, 2);
    assert.deepEqual(
      both.map(({ reward }) => reward),
      [1, 1],
    );
    await finish(run, 0, { attempt: 3, turns: [{ index: 0, finishReason: "stop", responseText: "5" }] });
    await eventually("the other one to wait", () => isOpen(run, 1));
    assert.equal((await give(run, 0, 0)).result, RewardResult.TAKEN);
    // A resumed run makes its rollouts again, and an episode from before counts no more.
    await eventually("the entry to go", () => isOpen(run, 0));
    await finish(run, 0, { resumption: 1 });
    await eventually("the rollout of the resumed run to wait", () => isOpen(run, 1));
    await finish(run, 0, { attempt: 4 });
    const { state } = await bus.manager.streams.info(StreamName.episodes);
    await eventually("the old one to be passed over", async () => {
      const { ack_floor } = await bus.manager.consumers.info(StreamName.episodes, "judge");
      return ack_floor.stream_seq >= state.last_seq;
    });
    const [open] = (await openRewardsOf(bus, run)).rollouts;
    assert.equal(open?.finished?.resumption, 1);
  });

  test("what nobody waits for is scored at once: rollouts of the warm start, and those without a reward to give", async () => {
    await using _judge = await startJudge();
    const run = "later-10";
    await startRun(run);
    await finish(run, 0, { slot: { split: "warm", step: 0, task: 0, index: 0 } });
    await finish(run, 1, { outcome: Outcome.CANCELLED, reason: "asked for" });
    const [warm, cancelled] = await scoredOf(run, 2);
    assert.deepEqual([warm?.episode?.outcome, warm?.scores.length], [Outcome.COMPLETED, 0]);
    assert.equal(cancelled?.episode?.outcome, Outcome.CANCELLED);
    assert.ok(await isOpen(run, 0));
  });

  test("a purge keeps episodes that wait, and the end of a run drops its rewards", async () => {
    await using _judge = await startJudge();
    const run = "later-11";
    await startRun(run);
    for (const index of [0, 1, 2]) await finish(run, index);
    await eventually("all to wait", () => isOpen(run, 3));
    for (const index of [0, 2]) await give(run, index, 1);
    await scoredOf(run, 2);
    await eventually("one to wait", () => isOpen(run, 1));
    const { state } = await bus.manager.streams.info(StreamName.episodes);
    await purgeEpisodes(bus, run, state.last_seq + 1);
    const left = await bus.manager.streams.info(StreamName.episodes, {
      subjects_filter: subjects.episodes(run),
    });
    assert.deepEqual(
      Object.values(left.state.subjects ?? {}),
      [2],
      "the one that waits, and the one behind it",
    );
    await give(run, 1, 0.5);
    assert.equal((await scoredOf(run, 1))[0]?.reward, 0.5);
    await eventually("none to wait", () => isOpen(run, 0));
    assert.ok((await runsWithRewards(bus)).includes(run), "until its rewards are dropped");
    await dropRewards(bus, run);
    assert.ok(!(await runsWithRewards(bus)).includes(run));
    assert.equal((await give(run, 1, 0.5)).result, RewardResult.NOT_OPEN);
  });
});
