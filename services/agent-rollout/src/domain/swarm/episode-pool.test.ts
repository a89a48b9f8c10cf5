import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type AgentResult, AttemptClock } from "@hone/agents";
import { delay, Outcome, Random } from "@hone/core";
import { ChatRenderer } from "@hone/tokenizer";
import { chatmlTokenizer } from "@hone/tokenizer/testing";
import { RolloutCancelledError, ServiceStoppingError } from "../errors.ts";
import { withoutAttempt } from "../run-rollout.ts";
import { openTestSession } from "../sessions/testing.ts";
import { WritingPolicy } from "../testing/row-rollouts.ts";
import { EpisodePool } from "./episode-pool.ts";
import { EpisodeEndedError, EpisodeOverError, EpisodeReturnedError, UnknownEpisodeError } from "./errors.ts";
import type { EpisodeReport, LentEpisode } from "./lent-episode.ts";

const renderer = new ChatRenderer(chatmlTokenizer());
const REPORT: EpisodeReport = { rewards: [], outcome: "completed", reason: "", metrics: {}, metadata: {} };
const never = new AbortController().signal;

/** Offers one attempt of a job, whose end is the returned promise. */
function offer(pool: EpisodePool, task: number, { leaseMs = 60_000, signal = never } = {}) {
  const episodes = pool.ofJob();
  const clock = new AttemptClock(60_000, () => undefined);
  const ended: Promise<AgentResult> = episodes.offer(
    {
      runId: "run-1",
      slot: { split: "train", step: 1, task, index: 0 },
      attempt: 1,
      task: { id: String(task) },
      session: {},
      leaseMs,
      freeReturns: 0,
      clock,
      openSession: () => {
        const { hosted } = openTestSession(renderer, new WritingPolicy(renderer, "yes"));
        return { hosted, told: { url: hosted.url, key: hosted.key, model: "policy" } };
      },
    },
    signal,
  );
  ended.catch(() => undefined).finally(() => clock.end());
  return { episodes, ended };
}

const take = (pool: EpisodePool, claim: string, waitMs = 0) =>
  pool.begin("run-1", claim, { waitMs, signal: never });
const must = (episode: LentEpisode | undefined) => episode ?? assert.fail("no episode");

describe("EpisodePool", () => {
  test("gives what waited longest to who asked first, and each claim one episode", async () => {
    const pool = new EpisodePool("http://here");
    for (let task = 0; task < 3; task++) offer(pool, task);
    const taskOf = (episode: LentEpisode) => (episode.facts().task as { id: string }).id;
    const first = must(await take(pool, "a"));
    assert.equal(taskOf(first), "0");
    assert.equal(await take(pool, "a"), first);
    assert.equal(taskOf(must(await take(pool, "b"))), "1");
    assert.equal(taskOf(must(await take(pool, "c"))), "2");
    assert.equal(await take(pool, "d"), undefined);
    const waiting = ["e", "f"].map((claim) => take(pool, claim, 5_000));
    offer(pool, 3);
    offer(pool, 4);
    const [e, f] = await Promise.all(waiting);
    assert.deepEqual([taskOf(must(e)), taskOf(must(f))], ["3", "4"]);
    assert.deepEqual(pool.counts(), { waiting: 0, lent: 5 });
    assert.equal(await pool.begin("run-2", "a", { waitMs: 0, signal: never }), undefined, "another run");
    pool.close();
  });

  test("answers an end when the episode is stored, and says why where it is not", async () => {
    const pool = new EpisodePool("http://here");
    const record = { ...withoutAttempt("", 1), outcome: Outcome.completed };
    const wanted: [(job: ReturnType<typeof offer>["episodes"]) => void, string][] = [
      [(job) => job.stored(record, false), "stored"],
      [(job) => job.stored(record, true), "stored_before"],
      [(job) => job.stored({ ...record, outcome: Outcome.cancelled }, false), "run_over"],
      [(job) => job.failed("no replica answered"), "attempt_ended"],
    ];
    for (const [index, [settle, expected]] of wanted.entries()) {
      const { episodes, ended } = offer(pool, index);
      const episode = must(await take(pool, `claim ${index}`));
      const ending = episode.end(REPORT, "one");
      await ended;
      assert.equal(await Promise.race([ending, delay(5).then(() => "nothing yet")]), "nothing yet");
      settle(episodes);
      const settlement = await ending;
      assert.equal(settlement.kind === "over" ? settlement.error.why : settlement.kind, expected);
    }
    pool.close();
  });

  test("gives up what waits when it drains, and what is lent when the attempt ends", async () => {
    const pool = new EpisodePool("http://here");
    const run = new AbortController();
    const lent = offer(pool, 0, { signal: run.signal });
    const episode = must(await take(pool, "a"));
    const parked = offer(pool, 1);
    pool.drain();
    await assert.rejects(parked.ended, ServiceStoppingError);
    await assert.rejects(take(pool, "b"), ServiceStoppingError);
    assert.equal(pool.counts().lent, 1, "its client may end it");
    run.abort(new RolloutCancelledError("run-1"));
    await assert.rejects(lent.ended, RolloutCancelledError);
    assert.throws(
      () => episode.end(REPORT, "one"),
      (error) => error instanceof EpisodeOverError && error.why === "run_over",
    );
    pool.close();
  });

  test("whatever clients do in whatever order, each episode comes to one end, and only one report of it is taken", async () => {
    for (let seed = 0; seed < 25; seed++) {
      const random = new Random(seed);
      const pool = new EpisodePool("http://here");
      const ends = new Map<number, string[]>();
      const taken = new Map<LentEpisode, number>();
      const known: LentEpisode[] = [];
      const reports: Promise<unknown>[] = [];
      const numTasks = 1 + random.nextInt(4);
      const jobs = Array.from({ length: numTasks }, async (_, task) => {
        // As runRollout does: an episode that comes back is offered again.
        while (true) {
          const { episodes, ended } = offer(pool, task, { leaseMs: 3 + random.nextInt(10) });
          const how = await ended.then(
            () => "reported",
            (error: unknown) => (error instanceof EpisodeReturnedError ? "returned" : "broken"),
          );
          ends.set(task, [...(ends.get(task) ?? []), how]);
          if (how !== "returned") {
            episodes.stored({ ...withoutAttempt("", 1), outcome: Outcome.completed }, false);
            return;
          }
        }
      });
      const refused = (error: unknown) => {
        const isKnown =
          error instanceof EpisodeOverError ||
          error instanceof EpisodeEndedError ||
          error instanceof UnknownEpisodeError;
        if (!isKnown) throw error;
      };
      let isOver = false;
      const all = Promise.all(jobs).then(() => {
        isOver = true;
      });
      for (let round = 0; !isOver && round < 2_000; round++) {
        // Mostly of the latest: episodes that ended long ago would crowd out the few that are lent.
        const any = known.at(-1 - random.nextInt(Math.max(1, round % 4 === 0 ? known.length : 6)));
        try {
          const act = random.nextInt(6);
          if (act <= 1 || any === undefined) {
            const episode = await take(pool, `claim ${random.nextInt(30)} of ${round >> 4}`, act);
            if (episode !== undefined) known.push(episode);
          } else if (act === 2) any.renew();
          else if (act === 3) any.abort("");
          else if (act === 4) {
            // The same report once more is the same report.
            const ending = any.end(REPORT, `report ${random.nextInt(2)}`);
            reports.push(ending.then(({ kind }) => kind === "stored" && taken.set(any, 1)));
          } else await delay(random.nextInt(8));
        } catch (error) {
          refused(error);
        }
      }
      // However little the random clients got done, an orderly one ends what they left.
      for (let rest = 0; !isOver; rest++) {
        const episode = await take(pool, `rest ${rest}`, 20);
        try {
          const ending = episode?.end(REPORT, "rest");
          if (episode !== undefined && ending !== undefined)
            reports.push(ending.then(({ kind }) => kind === "stored" && taken.set(episode, 1)));
        } catch (error) {
          refused(error);
        }
      }
      await all;
      await Promise.all(reports);
      for (const [task, hows] of ends) {
        assert.equal(hows.filter((how) => how === "reported").length, 1, `seed ${seed}, task ${task}`);
        assert.ok(!hows.includes("broken"), `seed ${seed}: ${hows}`);
      }
      assert.equal(taken.size, numTasks, `seed ${seed}: as many episodes were stored as there are tasks`);
      assert.deepEqual(pool.counts(), { waiting: 0, lent: 0 });
      pool.close();
    }
  });
});
