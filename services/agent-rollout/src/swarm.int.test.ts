import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { parseRunFile } from "@hone/config";
import { delay } from "@hone/core";
import { BucketName, openBucket } from "@hone/messaging";
import { Outcome } from "@hone/proto-gen/rollout";
import { RunPhase, RunStateSchema } from "@hone/proto-gen/run";
import type { RunningService } from "@hone/service-kit";
import { eventually } from "@hone/testing";
import { type JobFields, LIMITS, RolloutWorld } from "./testing/rollout-world.ts";
import { ask, begin, call, factsOf, SWARM_KEY, tell } from "./testing/swarm-client.ts";

/* Episodes that clients ask for, over real HTTP and a real bus. */

const PAGE = path.join(import.meta.dirname, "../../../docs/swarm.md");
const ROW = { prompt: "0123", level: 3, reward_model: { ground_truth: "42" } };
let nextClaim = 0;
const newClaim = () => `claim-of-a-test-${nextClaim++}`;

describe("episodes for clients", { timeout: 240_000 }, () => {
  let world: RolloutWorld;
  let service: RunningService;
  let url: string;

  before(async () => {
    world = await RolloutWorld.open();
    service = await world.startService({ HONE_SWARM_KEY: SWARM_KEY });
    url = service.http.url;
  });
  after(() => world?.close());

  const setPhase = async (runId: string, phase: RunPhase) => {
    const bucket = await openBucket(world.bus, BucketName.runState, RunStateSchema);
    await bucket.put(runId, create(RunStateSchema, { runId, phase }));
  };
  /** A run whose model answers everything with 01. */
  const open = async (runId: string) => {
    await world.gateway({ model: runId, replica: "one", behave: () => world.answer("01") });
    await setPhase(runId, RunPhase.ROLLOUT);
    // The service follows the states of runs, so it may know the run a moment later.
    await eventually("the run to be known", async () => {
      return (await begin(url, runId, newClaim(), { waitMs: 0 })).status === 204;
    });
  };
  const submit = (runId: string, task = 0, swarm: object = {}, fields: JobFields = {}) =>
    world.submit(
      world.job(runId, {
        slot: { split: "train", step: 1, task, index: 0 },
        task: { id: `${runId}:${task}`, rowJson: JSON.stringify(ROW) },
        agentName: "swarm",
        agentConfigJson: JSON.stringify({ swarm }),
        ...fields,
      }),
    );
  const metrics = async () => (await fetch(`${url}/metrics`)).text();

  test("a client gets a task without its answer, plays it through its session, and its report is the episode", async () => {
    await open("w-plain");
    await submit("w-plain");
    const runs = async (key: string) => {
      const answer = await fetch(`${url}/runs`, { headers: { authorization: `Bearer ${key}` } });
      return { status: answer.status, ...((await answer.json()) as { runs?: string[] }) };
    };
    await eventually("the run to be listed", async () => (await runs(SWARM_KEY)).runs?.[0] === "w-plain");
    assert.equal((await runs("wrong")).status, 401);
    const lent = factsOf(await begin(url, "w-plain", newClaim()));
    assert.deepEqual((await runs(SWARM_KEY)).runs, []);
    assert.deepEqual(lent.task, {
      id: "w-plain:0",
      prompt: [{ role: "user", content: "0123" }],
      row: { prompt: "0123", level: 3 },
      maxTurns: LIMITS.maxTurns,
      maxNewTokens: 16,
    });
    assert.equal((await call(lent)).status, 200);
    const report = { reward: 0.5, metrics: { tries: 2 }, metadata: { solution: "42" } };
    const ended = await tell(lent, "end", report);
    assert.deepEqual(ended.body, { stored: true, outcome: "completed", reward: 0.5 });
    // The answer comes after the episode is stored, so it is there at once.
    const episode = await world.episodeOf("w-plain");
    assert.equal(episode.outcome, Outcome.COMPLETED);
    assert.equal(episode.attempt, 1);
    assert.equal(episode.environmentReturn, 0.5);
    assert.equal(episode.turns[0]?.reward, 0.5);
    assert.equal(episode.metrics.tries, 2);
    assert.deepEqual(JSON.parse(episode.metadataJson), { solution: "42" });
    assert.equal((await call(lent)).status, 404, "its session is over");
  });

  test("the task of an environment is its name, seed and configuration, and the row may come whole", async () => {
    await open("w-tasks");
    const named = {
      environment: "frozen_lake",
      environmentSeed: 9n,
      environmentConfigJson: '{"size":4}',
    };
    await submit("w-tasks", 0, {}, { task: { id: "lake:9", ...named } });
    const lake = factsOf(await begin(url, "w-tasks", newClaim()));
    assert.deepEqual((lake.task as { environment: unknown }).environment, {
      name: "frozen_lake",
      seed: 9,
      config: { size: 4 },
    });
    await call(lake);
    assert.equal((await tell(lake, "end", { reward: 1, outcome: "truncated" })).body.outcome, "truncated");
    await submit("w-tasks", 1, {}, { agentConfigJson: JSON.stringify({ exposeGroundTruth: true }) });
    const whole = factsOf(await begin(url, "w-tasks", newClaim()));
    assert.deepEqual((whole.task as { row: unknown }).row, ROW);
    await tell(whole, "end", { outcome: "agent_failed", reason: "its browser crashed" });
    const [first, second] = await world.episodesOf("w-tasks", 2);
    assert.equal(first?.outcome, Outcome.TRUNCATED);
    assert.equal(second?.outcome, Outcome.AGENT_FAILED);
    assert.match(second?.reason ?? "", /its browser crashed/);
  });

  test("the same claim gets the same episode, and the same report the same answer", async () => {
    await open("w-again");
    const claim = newClaim();
    const asking = [begin(url, "w-again", claim), begin(url, "w-again", claim)];
    await eventually("both requests", async () => (await metrics()).includes('state="waiting"'));
    await delay(100);
    await submit("w-again", 0);
    await submit("w-again", 1);
    const answers = await Promise.all(asking);
    // The request that came first was replaced by its repetition.
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 204]);
    const lent = factsOf(answers.find(({ status }) => status === 200)!);
    assert.deepEqual(factsOf(await begin(url, "w-again", claim)), lent);
    await call(lent);
    const ends = await Promise.all([1, 2, 3].map(() => tell(lent, "end", { reward: 1 })));
    for (const { status, body } of ends) assert.deepEqual([status, body.reward], [200, 1]);
    const other = await tell(lent, "end", { reward: 5 });
    assert.deepEqual([other.status, other.code], [409, "already_ended"]);
    assert.equal((await tell(lent, "abort")).code, "already_ended");
    assert.equal((await begin(url, "w-again", claim)).code, "already_ended");
    const second = factsOf(await begin(url, "w-again", newClaim()));
    assert.notEqual(second.episode.id, lent.episode.id);
    await tell(second, "end");
    const episodes = await world.episodesOf("w-again", 2);
    assert.deepEqual(episodes.map(({ environmentReturn }) => environmentReturn).sort(), [0, 1]);
  });

  test("an episode that is aborted, or whose client vanishes, is played again without costing an attempt", async () => {
    await open("w-lost");
    await submit("w-lost", 0, { leaseMs: 400 }, { limits: { ...LIMITS, maxAttempts: 1 } });
    const aborted = factsOf(await begin(url, "w-lost", newClaim()));
    await call(aborted);
    for (let i = 0; i < 2; i++) {
      assert.equal((await tell(aborted, "abort", { reason: "my train leaves" })).status, 200);
    }
    assert.equal((await tell(aborted, "end", { reward: 1 })).code, "aborted");

    const vanished = factsOf(await begin(url, "w-lost", newClaim()));
    await call(vanished);
    const third = factsOf(await begin(url, "w-lost", newClaim()));
    const late = await tell(vanished, "end", { reward: 100 });
    assert.deepEqual([late.status, late.code], [410, "lease_expired"]);
    assert.match(JSON.stringify(late.body), /no sign of life for 400 ms/);
    assert.equal((await call(vanished)).status, 404);
    assert.equal((await tell(vanished, "heartbeat")).code, "lease_expired");
    await call(third);
    assert.equal((await tell(third, "end", { reward: 1 })).status, 200);

    const episode = await world.episodeOf("w-lost");
    assert.equal(episode.outcome, Outcome.COMPLETED);
    assert.equal(episode.attempt, 1);
    assert.equal(episode.environmentReturn, 1);
    assert.deepEqual(episode.failedAttempts, [
      "its client gave it back: my train leaves",
      "its client gave no sign of life for 400 ms, which is its lease",
    ]);
    assert.equal(episode.samples.length, 1, "nothing of the earlier clients is left");
    assert.match(await metrics(), /hone_swarm_returns_total\{why="lease_expired"\} 1/);
  });

  test("after that an episode that comes back costs an attempt, so clients that never finish end it", async () => {
    await open("w-limit");
    await submit("w-limit", 0, { freeReturns: 1 }, { limits: { ...LIMITS, maxAttempts: 2 } });
    for (let i = 0; i < 3; i++) await tell(factsOf(await begin(url, "w-limit", newClaim())), "abort");
    const episode = await world.episodeOf("w-limit");
    assert.equal(episode.outcome, Outcome.INFRA_FAILED);
    assert.equal(episode.attempt, 2);
  });

  test("calls and heartbeats renew the lease", async () => {
    await open("w-renew");
    await submit("w-renew", 0, { leaseMs: 800 });
    const lent = factsOf(await begin(url, "w-renew", newClaim()));
    for (let i = 0; i < 6; i++) {
      await delay(300);
      assert.equal((await (i % 2 === 0 ? tell(lent, "heartbeat") : call(lent))).status, 200);
    }
    assert.equal((await tell(lent, "end", { reward: 1 })).status, 200);
    assert.equal((await world.episodeOf("w-renew")).attempt, 1);
  });

  test("time counts only while a client has the episode and shows that it is there", async () => {
    await open("w-clock");
    const limits = { ...LIMITS, deadlineMs: 700 };
    await submit("w-clock", 0, {}, { limits });
    await delay(1_000); // nobody has it yet
    const slow = factsOf(await begin(url, "w-clock", newClaim()));
    await delay(900);
    const late = await tell(slow, "end", { reward: 1 });
    assert.deepEqual([late.status, late.code], [410, "timed_out"]);
    assert.equal((await world.episodeOf("w-clock")).outcome, Outcome.TIMED_OUT);

    await open("w-silent");
    await submit("w-silent", 0, { leaseMs: 900 }, { limits });
    await begin(url, "w-silent", newClaim()); // vanishes, with a lease that is longer than the deadline
    const second = factsOf(await begin(url, "w-silent", newClaim()));
    assert.equal((await tell(second, "end")).status, 200);
    assert.equal((await world.episodeOf("w-silent")).outcome, Outcome.COMPLETED);
  });

  test("where nothing waits the answer is 204, and a run that is unknown or over has a clear answer", async () => {
    await open("w-empty");
    const startedAt = performance.now();
    assert.equal((await begin(url, "w-empty", newClaim(), { waitMs: 300 })).status, 204);
    assert.ok(performance.now() - startedAt >= 290);
    const unknown = await begin(url, "w-nowhere", newClaim());
    assert.deepEqual([unknown.status, unknown.code], [404, "unknown_run"]);
    await submit("w-empty");
    const lent = factsOf(await begin(url, "w-empty", newClaim()));
    const waiting = begin(url, "w-empty", newClaim(), { waitMs: 1_000 });
    await setPhase("w-empty", RunPhase.CANCELLED);
    assert.equal((await waiting).code, "run_over");
    assert.equal((await begin(url, "w-empty", newClaim())).code, "run_over");
    assert.deepEqual((await tell(lent, "end", { reward: 1 })).code, "run_over");
    assert.equal((await world.episodeOf("w-empty")).outcome, Outcome.CANCELLED);
  });

  test("an episode that nobody begins in time ends without further attempts, where the run file says so", async () => {
    await open("w-nobody");
    await submit("w-nobody", 0, { beginDeadlineMs: 200 });
    const episode = await world.episodeOf("w-nobody");
    assert.equal(episode.outcome, Outcome.INFRA_FAILED);
    assert.match(episode.reason, /no client began the episode within 200 ms/);
    assert.equal(episode.attempt, 1);
  });

  test("a client that leaves while it waits takes no episode with it", async () => {
    await open("w-left");
    const client = new AbortController();
    const waiting = begin(url, "w-left", newClaim(), { signal: client.signal });
    waiting.catch(() => undefined);
    await delay(100);
    client.abort();
    await delay(100);
    await submit("w-left");
    const lent = factsOf(await begin(url, "w-left", newClaim(), { waitMs: 5_000 }));
    assert.equal((await tell(lent, "end")).status, 200);
  });

  test("the example of docs/swarm.md plays", async () => {
    await open("w-page");
    const text = await readFile(PAGE, "utf8");
    const files = new Map(
      [...text.matchAll(/```\w+\n(?:\/\/|#) file: (\S+)\n(.*?)```/gs)].map(([, name, code]) => [name, code]),
    );
    const { agent } = parseRunFile(files.get("capitals.yaml") ?? "");
    for (const task of [0, 1]) {
      const chosen = { agentName: agent.name, agentConfigJson: JSON.stringify(agent.config) };
      await submit("w-page", task, {}, chosen);
    }
    const client = spawn(process.execPath, ["--input-type=module", "-e", files.get("client.mjs") ?? ""], {
      env: { HONE_SWARM_URL: url, HONE_SWARM_KEY: SWARM_KEY, HONE_SWARM_RUN: "w-page" },
      stdio: ["ignore", "inherit", "inherit"],
    });
    const gone = once(client, "close");
    const episodes = await world.episodesOf("w-page", 2);
    for (const { environmentReturn, metadataJson, turns } of episodes) {
      assert.equal(environmentReturn, 1);
      assert.deepEqual(JSON.parse(metadataJson), { solution: "01" });
      assert.equal(turns.length, 1);
    }
    await setPhase("w-page", RunPhase.COMPLETED);
    assert.deepEqual(await gone, [0, null], "it ends with its run");
  });

  describe("against attackers", () => {
    test("no key but the right one opens anything, and a stolen session key can only call the model", async () => {
      await open("w-keys");
      await submit("w-keys", 0);
      await submit("w-keys", 1);
      const one = factsOf(await begin(url, "w-keys", newClaim()));
      const other = factsOf(await begin(url, "w-keys", newClaim()));
      await call(one);
      const wrong = [undefined, "x", `${SWARM_KEY}x`, one.session.key, one.episode.key];
      for (const key of wrong) {
        const refused = await begin(url, "w-keys", newClaim(), { key });
        assert.deepEqual([refused.status, refused.code], [401, "invalid_api_key"]);
        assert.doesNotMatch(JSON.stringify(refused.body), /a-key-of/);
      }
      for (const verb of ["end", "abort", "heartbeat"]) {
        for (const key of [undefined, SWARM_KEY, one.session.key, other.episode.key]) {
          const refused = await ask(`${one.episode.url}/${verb}`, {}, { key });
          assert.deepEqual([refused.status, refused.code], [401, "invalid_api_key"]);
        }
      }
      const rewarded = await ask(`${one.session.url}/rewards`, { value: 9 }, { key: one.session.key });
      assert.equal(rewarded.status, 403);
      assert.equal((await call(one, "01", one.episode.key)).status, 401, "an episode's key is no session's");
      assert.equal((await tell(one, "end", { reward: 1 })).body.reward, 1);
      await tell(other, "end");
    });

    test("rubbish is refused with what is wrong, and changes nothing", async () => {
      await open("w-rubbish");
      await submit("w-rubbish");
      const lent = factsOf(await begin(url, "w-rubbish", newClaim()));
      const unplayed = await tell(lent, "end", { reward: 1 });
      assert.deepEqual([unplayed.status, unplayed.code], [400, "no_such_turn"]);
      await call(lent);
      const bodies: unknown[] = [
        "{",
        "[]",
        "null",
        '{"reward":1e999}',
        '{"reward":"1"}',
        '{"reward":1,"rewards":[{"value":1,"turn":-1}]}',
        '{"rewards":[{"value":1,"turn":0},{"value":1,"turn":7}]}',
        '{"outcome":"infra_failed"}',
        '{"metrics":{"a":"b"}}',
        '{"metadata":[]}',
        '{"unknown":1}',
        `${'{"metadata":{"a":'.repeat(5_000)}`,
      ];
      for (const body of bodies) {
        assert.equal((await tell(lent, "end", body)).status, 400, String(body).slice(0, 80));
      }
      assert.equal((await tell(lent, "end", "x".repeat(1_100_000))).status, 413);
      for (const claim of ["", "short", "a/../../b-----------------", "x".repeat(200)]) {
        assert.equal((await begin(url, "w-rubbish", claim)).status, 400);
      }
      assert.equal((await begin(url, "%2e%2e%2f", newClaim())).status, 404);
      assert.equal((await begin(url, "w-rubbish", newClaim(), { waitMs: 1e9 })).status, 400);
      assert.equal((await ask(`${url}/episodes/${"0".repeat(32)}/end`, {})).code, "unknown_episode");
      assert.equal((await ask(`${url}/episodes/x/y/z`, {})).status, 404);
      const ended = await tell(lent, "end", { rewards: [{ value: 0.25, turn: 0 }], reward: 0.5 });
      assert.equal(ended.body.reward, 0.75);
      assert.equal((await world.episodeOf("w-rubbish")).environmentReturn, 0.75);
    });

    test("a flood of clients that wait is bounded, and leaves room for the others", async () => {
      await open("w-flood");
      await open("w-calm");
      const flood = new AbortController();
      const answers = Array.from({ length: 300 }, () =>
        begin(url, "w-flood", newClaim(), { waitMs: 30_000, signal: flood.signal }).catch(() => undefined),
      );
      const refused = await Promise.race(answers);
      assert.deepEqual([refused?.status, refused?.code], [429, "too_many_waiting"]);
      assert.equal((await begin(url, "w-calm", newClaim())).code, "too_many_waiting");
      await submit("w-calm");
      // What waits already is given out all the same.
      const lent = await eventually("the episode", async () => {
        const answer = await begin(url, "w-calm", newClaim(), { waitMs: 0 });
        return answer.status === 200 && factsOf(answer);
      });
      assert.equal((await call(lent)).status, 200);
      assert.equal((await tell(lent, "end")).status, 200);
      flood.abort();
      await Promise.all(answers);
      await eventually("room for clients again", async () => {
        return (await begin(url, "w-flood", newClaim(), { waitMs: 10 })).status === 204;
      });
    });
  });

  test("a service that stops gives back what waits, and what a client has goes to another process", async () => {
    const second = await world.startService({ HONE_SWARM_KEY: SWARM_KEY });
    await open("w-stop");
    await submit("w-stop");
    // Either of the two has taken the job.
    const [here, there] = await Promise.all(
      [url, second.http.url].map((each) => begin(each, "w-stop", newClaim(), { waitMs: 1_500 })),
    );
    const held = [here!, there!].find(({ status }) => status === 200)!;
    const [stopped, heirUrl] = held === here ? [service, second.http.url] : [second, url];
    await stopped.stop({ graceMs: 300 });
    const again = factsOf(await begin(heirUrl, "w-stop", newClaim(), { waitMs: 20_000 }));
    assert.equal((await tell(again, "end")).status, 200);
    await assert.rejects(tell(factsOf(held), "end"), "the process is gone");
    assert.equal((await world.episodeOf("w-stop")).outcome, Outcome.COMPLETED);
  });
});
