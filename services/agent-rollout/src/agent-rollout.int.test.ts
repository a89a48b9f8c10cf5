import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { promptOfRow, register, toLangChainMessages } from "@hone/agents";
import {
  BucketName,
  type Bus,
  DurableName,
  openBucket,
  request,
  StreamName,
  subjects,
  ValidatingService,
} from "@hone/messaging";
import { TaskSchema } from "@hone/proto-gen/dataset";
import { GenerateError_Reason as Reason } from "@hone/proto-gen/policy";
import { Outcome } from "@hone/proto-gen/rollout";
import { RunPhase, RunStateSchema, ValidateReplySchema, ValidateRequestSchema } from "@hone/proto-gen/run";
import type { RunningService } from "@hone/service-kit";
import { eventually } from "@hone/testing";
import { z } from "zod";
import type { Behaviour, FakeGatewayOptions } from "./testing/fake-gateway.ts";
import { type JobFields, LIMITS, RolloutWorld } from "./testing/rollout-world.ts";

register("streamer", {
  configSchema: z.strictObject({}),
  needsEnvironment: false,
  buildGraph: () => undefined,
  async run(_graph, { model, task }) {
    const texts: string[] = [];
    for await (const chunk of await model.stream(toLangChainMessages(promptOfRow(task))))
      texts.push(chunk.text);
    return { metadata: { texts } };
  },
});

const LEAN_AGENT = {
  systemPrompt: "",
  instruction: "",
  promptTemplate: "{observation}\n{player_row}{player_column}{goal_row}{goal_column}",
  historyTurns: 0,
};

describe("agent-rollout on a real bus", { timeout: 120_000 }, () => {
  let world: RolloutWorld;
  let bus: Bus;
  let service: RunningService;

  const startOwn = () => world.startService({ HONE_POLICY_IDLE_TIMEOUT_MS: "400" });

  before(async () => {
    world = await RolloutWorld.open();
    ({ bus } = world);
    service = await startOwn();
  });
  after(() => world?.close());

  const answer = (text: string) => world.answer(text);
  const gatewayFor = (
    model: string,
    replica: string,
    behave: FakeGatewayOptions["behave"],
    versions: readonly number[] = [0],
  ) => world.gateway({ model, replica, behave, versions });
  const job = (runId: string, task: number, fields: JobFields = {}) =>
    world.job(runId, {
      slot: { split: "train", step: 1, task, index: 0 },
      task: {
        id: `frozen_lake:${task}`,
        environment: "frozen_lake",
        environmentSeed: BigInt(task),
        environmentConfigJson: "{}",
      },
      agentName: "frozen_lake",
      agentConfigJson: JSON.stringify(LEAN_AGENT),
      limits: { ...LIMITS, deadlineMs: 20_000 },
      cursor: BigInt(task),
      ...fields,
    });
  const jobsLeft = async () => (await bus.manager.streams.info(StreamName.jobs)).state.messages;

  test("runs jobs with a replica and publishes the tokens that the engine saw and sampled", async () => {
    const run = "exact-1";
    const moves = ["Right", "Down", "Left", "Up", "Nowhere"];
    let calls = 0;
    const gateway = await gatewayFor(run, "a", () =>
      answer(`<answer>${moves[calls++ % moves.length]}</answer>`),
    );
    await Promise.all(Array.from({ length: 20 }, (_, task) => world.submit(job(run, task))));
    const episodes = await world.episodesOf(run, 20);
    assert.equal(new Set(episodes.map(({ slot }) => slot!.task)).size, 20);
    const seen = new Set(gateway.requests.map(({ promptIds }) => promptIds.join(",")));
    for (const episode of episodes) {
      assert.ok(episode.outcome === Outcome.COMPLETED || episode.outcome === Outcome.TRUNCATED);
      assert.equal(episode.turns.length, episode.samples.length);
      assert.equal(episode.environmentReturn, episode.metrics.success);
      for (const turn of episode.turns) {
        const { tokenIds, lossMask, logprobs, versions } = episode.samples[turn.sample]!;
        assert.ok(seen.has(tokenIds.slice(0, turn.sampledBegin).join(",")));
        assert.equal(lossMask.length, tokenIds.length);
        assert.equal(logprobs.length, turn.sampledEnd - turn.sampledBegin);
        assert.deepEqual(
          versions.map(({ version, tokenCount }) => [version, tokenCount]),
          [[0, logprobs.length]],
        );
        assert.equal(typeof JSON.parse(turn.infoJson).action_is_valid, "boolean");
      }
    }
    await eventually("every job acknowledged", async () => (await jobsLeft()) === 0);
  });

  test("streams each token to an agent once, even when another replica continues", async () => {
    const run = "stream-1";
    const tokenIds = world.tokenizer.encode("1,2,3<|end|>");
    let tries = 0;
    for (const replica of ["a", "b"]) {
      await gatewayFor(run, replica, () => ({
        kind: "stream",
        tokenIds,
        ...(tries++ === 0 && { diesAfter: 3 }),
      }));
    }
    const row = { id: "rows:1", rowJson: '{"prompt":"1"}' };
    await world.submit(
      job(run, 0, { agentName: "streamer", agentConfigJson: "{}", task: create(TaskSchema, row) }),
    );
    const episode = await world.episodeOf(run);
    assert.deepEqual(JSON.parse(episode.metadataJson).texts, ["1", ",", "2", ",", "3", ""]);
    assert.equal(tries, 2);
    assert.equal(episode.turns[0]?.responseText, "1,2,3");
  });

  test("keeps its episodes while their stream is full, and stores each once when there is space", async () => {
    const run = "full-1";
    const { config, state } = await bus.manager.streams.info(StreamName.episodes);
    await bus.manager.streams.update(StreamName.episodes, { ...config, max_bytes: state.bytes + 1 });
    const count = 8;
    await Promise.all(
      Array.from({ length: count }, (_, task) =>
        world.submit(job(run, task, { scriptedPolicy: "random_legal" })),
      ),
    );
    const consumer = () => bus.manager.consumers.info(StreamName.jobs, DurableName.jobs);
    await eventually("every job to be in work", async () => (await consumer()).num_ack_pending === count);
    const before = (await consumer()).delivered.consumer_seq;
    assert.equal((await bus.manager.streams.info(StreamName.episodes)).state.last_seq, state.last_seq);
    await bus.manager.streams.update(StreamName.episodes, { ...config, max_bytes: config.max_bytes });
    const episodes = await world.episodesOf(run, count);
    assert.equal(new Set(episodes.map(({ slot }) => slot!.task)).size, count);
    await eventually("every job acknowledged", async () => (await jobsLeft()) === 0);
    assert.equal((await consumer()).delivered.consumer_seq, before);
  });

  test("plays the scripted policy without any replica, and marks its episodes", async () => {
    const run = "script-1";
    await Promise.all(
      Array.from({ length: 50 }, (_, task) =>
        world.submit(job(run, task, { scriptedPolicy: "random_legal" })),
      ),
    );
    for (const episode of await world.episodesOf(run, 50)) {
      assert.equal(JSON.parse(episode.metadataJson).scriptedPolicy, "random_legal");
      for (const turn of episode.turns) assert.equal(JSON.parse(turn.infoJson).action_is_effective, true);
      for (const sample of episode.samples) {
        assert.equal(sample.logprobs.length, 0);
        assert.equal(sample.lossMask.filter((bit) => bit === 1).length, 4);
      }
    }
  });

  test("asks another replica, with the same seed, when one is dead, busy or silent", async () => {
    const run = "elsewhere-1";
    const refusals: Behaviour[] = [
      { kind: "refuse", reason: Reason.BUSY },
      { kind: "refuse", reason: Reason.UNAVAILABLE },
      { kind: "silence" },
    ];
    let next = 0;
    const bad = await gatewayFor(run, "bad", () => refusals[next++ % refusals.length]!);
    const good = await gatewayFor(run, "good", () => answer("<answer>Right</answer>"));
    await Promise.all(Array.from({ length: 12 }, (_, task) => world.submit(job(run, task))));
    for (const episode of await world.episodesOf(run, 12)) {
      assert.equal(episode.attempt, 1);
      assert.deepEqual(episode.failedAttempts, []);
      assert.notEqual(episode.outcome, Outcome.INFRA_FAILED);
    }
    assert.ok(bad.requests.length > 0);
    for (const refused of bad.requests) {
      assert.ok(
        good.requests.some(({ requestId, seed }) => requestId === refused.requestId && seed === refused.seed),
      );
    }
  });

  test("waits for a replica that has the version without counting the time", async () => {
    const run = "behind-1";
    const gateway = await gatewayFor(run, "a", () => answer("<answer>Right</answer>"), [4]);
    await world.submit(
      job(run, 0, {
        lowestVersion: 5,
        highestVersion: 5,
      }),
    );
    await eventually("the job in work", async () => (await jobsLeft()) === 1);
    assert.equal(gateway.requests.length, 0);
    await gateway.report([4, 5]);
    const episode = await world.episodeOf(run);
    assert.equal(episode.attempt, 1);
    assert.equal(gateway.requests[0]!.lowestVersion, 5);
  });

  test("ends as timed_out when the engine works on a call for longer than the attempt has, and aborts the call", async () => {
    const run = "late-1";
    const gateway = await gatewayFor(run, "a", () => ({ kind: "heartbeats", queuePosition: 0 }));
    const limits = { ...LIMITS, deadlineMs: 100 };
    await world.submit(job(run, 0, { limits }));
    const episode = await world.episodeOf(run);
    assert.equal(episode.outcome, Outcome.TIMED_OUT);
    await eventually("the abort", () => gateway.aborted.length === 1);
  });

  test("repeats a call that was cut off in a queue, and ends as timed_out when it was cut off in work", async () => {
    const run = "queue-1";
    const gateway = await gatewayFor(run, "a", ({ deadlineMs }) =>
      gateway.requests.length <= 2
        ? { kind: "cut_off", queueMs: deadlineMs, decodeMs: 0 }
        : { kind: "cut_off", queueMs: 0, decodeMs: deadlineMs },
    );
    await world.submit(job(run, 0));
    const episode = await world.episodeOf(run);
    assert.equal(episode.outcome, Outcome.TIMED_OUT);
    assert.equal(gateway.requests.length, 3);
  });

  test("ends as stale when the version is gone for good, and as infra_failed when the request is refused", async () => {
    const run = "refused-1";
    await gatewayFor(run, "a", ({ requestId }) => ({
      kind: "refuse",
      reason: requestId.includes("train.1.0.") ? Reason.STALE : Reason.INVALID,
    }));
    await world.submit(job(run, 0));
    await world.submit(job(run, 1));
    const [stale, invalid] = await world.episodesOf(run, 2);
    assert.equal(stale!.outcome, Outcome.STALE);
    assert.equal(invalid!.outcome, Outcome.INFRA_FAILED);
    assert.match(invalid!.reason, /as the test wants it/);
  });

  test("ends the rollouts of a run that is cancelled", async () => {
    const run = "cancel-1";
    const gateway = await gatewayFor(run, "a", () => ({ kind: "heartbeats", queuePosition: 0 }));
    await world.submit(job(run, 0));
    await eventually("the call under way", () => gateway.requests.length === 1);
    const bucket = await openBucket(bus, BucketName.runState, RunStateSchema);
    await bucket.put(run, create(RunStateSchema, { runId: run, phase: RunPhase.CANCELLED }));
    const episode = await world.episodeOf(run);
    assert.equal(episode.outcome, Outcome.CANCELLED);
  });

  test("ends as infra_failed for an unknown agent, and suggests a known one", async () => {
    const run = "unknown-1";
    await world.submit(job(run, 0, { agentName: "frozen_lack" }));
    const episode = await world.episodeOf(run);
    assert.equal(episode.outcome, Outcome.INFRA_FAILED);
    assert.match(episode.reason, /did you mean "frozen_lake"/);
  });

  test("gives its rollouts back when it stops, and another process finishes them with the same seeds", async () => {
    const run = "handover-1";
    const gateway = await gatewayFor(run, "a", () =>
      gateway.requests.length === 1
        ? { kind: "heartbeats", queuePosition: 0 }
        : answer("<answer>Right</answer>"),
    );
    await world.submit(job(run, 0));
    await eventually("the call under way", () => gateway.requests.length === 1);
    await service.stop({ graceMs: 600 });
    service = await startOwn();
    const episode = await world.episodeOf(run);
    assert.ok(episode.outcome === Outcome.COMPLETED || episode.outcome === Outcome.TRUNCATED);
    const [first, second] = gateway.requests;
    assert.equal(second!.seed, first!.seed);
    assert.deepEqual(second!.promptIds, first!.promptIds);
  });

  test("validate answers with the key, the value and what is allowed", async () => {
    const runFile = {
      name: "x",
      seed: 1,
      model: { init: { architecture: "qwen3", hiddenSize: 64, numLayers: 1, numHeads: 4, tokenizer: "t" } },
      warmStart: { kind: "sft", policy: "random_leagl", tasks: 10 },
      dataset: { train: { source: "environment", environment: "frozen_lak", seeds: { from: 0, to: 10 } } },
      agent: { name: "frozen_lake", config: { historyTurn: 0, promptTemplate: "{observed}" } },
      rollout: { tasksPerStep: 1, groupSize: 2 },
      trainer: { steps: 1, optimizer: { kind: "adamw", learningRate: 0.001 } },
    };
    const problemsOf = async (file: object) => {
      const reply = await request(
        bus,
        subjects.validate(ValidatingService.agentRollout),
        ValidateRequestSchema,
        create(ValidateRequestSchema, { configJson: JSON.stringify(file) }),
        ValidateReplySchema,
        { timeoutMs: 5_000 },
      );
      return new Map(reply.problems.map((problem) => [problem.key, problem]));
    };
    const problems = await problemsOf(runFile);
    assert.match(problems.get("warmStart.policy")!.allowed, /random_legal \(did you mean "random_legal"\?\)/);
    assert.match(problems.get("dataset.train.environment")!.allowed, /did you mean "frozen_lake"/);
    assert.match(problems.get("agent.config.historyTurn")!.allowed, /did you mean "historyTurns"/);
    assert.equal(problems.get("agent.config.historyTurn")!.valueJson, "0");
    // Which placeholders there are follows from the environment, so these are checked once that is known.
    const { environment: _wrong, ...train } = runFile.dataset.train;
    const others = await problemsOf({
      ...runFile,
      dataset: { train: { ...train, environment: "frozen_lake" } },
      agent: { name: "gym", config: { promptTemplate: "{observed}" } },
    });
    assert.match(others.get("agent.config.promptTemplate")!.allowed, /\{observation\}/);
  });
});
