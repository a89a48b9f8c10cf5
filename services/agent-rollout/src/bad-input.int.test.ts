import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { BucketName, type Bus, publishBytes, StreamName, subjects, ValidatingService } from "@hone/messaging";
import { GenerateReplySchema, ReplicaStateSchema } from "@hone/proto-gen/policy";
import { EpisodeSchema, Outcome, RolloutJobSchema } from "@hone/proto-gen/rollout";
import { RunStateSchema, ValidateRequestSchema } from "@hone/proto-gen/run";
import { eventually } from "@hone/testing";
import { badBodies, withInputs } from "@hone/testing/fuzz";
import { FakeGateway } from "./testing/fake-gateway.ts";
import { type JobFields, RolloutWorld } from "./testing/rollout-world.ts";

const RUN = "fuzz-1";

describe("agent-rollout and bad input", { timeout: 180_000 }, () => {
  let world: RolloutWorld;
  let bus: Bus;
  before(async () => {
    world = await RolloutWorld.open();
    ({ bus } = world);
    const service = await world.startService({ HONE_POLICY_IDLE_TIMEOUT_MS: "300" });
    await service.becameReady;
  });
  after(() => world?.close());

  const job = (runId: string, fields: JobFields = {}) =>
    world.job(runId, {
      task: {
        id: "frozen_lake:1",
        environment: "frozen_lake",
        environmentSeed: 1n,
        environmentConfigJson: "{}",
      },
      agentName: "frozen_lake",
      // Needs no replica; a job for the model would wait for one.
      scriptedPolicy: "random_legal",
      sampling: { temperature: 1, topP: 1, maxNewTokens: 8 },
      limits: { maxTurns: 3, maxContextTokens: 256, deadlineMs: 2_000, maxAttempts: 1 },
      ...fields,
    });
  const messages = async (stream: StreamName) => (await bus.manager.streams.info(stream)).state.messages;
  const jobsOf = async (run: string) => {
    const filter = { subjects_filter: subjects.rolloutJob(run) };
    const { subjects: counts } = (await bus.manager.streams.info(StreamName.jobs, filter)).state;
    return Object.values(counts ?? {}).reduce((sum, count) => sum + count, 0);
  };
  const lastOf = async (run: string) => {
    const subject = subjects.rolloutFinished(run);
    const message = await bus.manager.streams
      .getMessage(StreamName.episodes, { last_by_subj: subject })
      .catch(() => null);
    return message === null ? undefined : fromBinary(EpisodeSchema, message.data);
  };

  test("every job ends as an episode of its run or in the stream DEAD, and the next good one is played", async () => {
    // Jobs that ask for the model would wait for it, so a replica refuses them at once.
    const gateway = new FakeGateway(bus, {
      model: RUN,
      replica: "a",
      behave: () => ({ kind: "refuse", reason: 4 }),
      versions: [0],
    });
    await gateway.report();
    await withInputs(badBodies(RolloutJobSchema, job(RUN)), 250, async (bodies) => {
      for (const body of bodies) {
        await publishBytes(bus, subjects.rolloutJob(RUN), body, undefined);
      }
      await eventually(
        "every job but those that wait for a version",
        async () => {
          const left = await messages(StreamName.jobs);
          if (left === 0) return true;

          return left <= bodies.length * 0.2;
        },
        { deadlineMs: 30_000 },
      );
      await publishBytes(
        bus,
        subjects.rolloutJob("after-1"),
        toBinary(RolloutJobSchema, job("after-1")),
        undefined,
      );
      const played = await eventually("the good one", () => lastOf("after-1"));
      assert.ok(played.outcome === Outcome.COMPLETED || played.outcome === Outcome.TRUNCATED, played.reason);
      assert.ok((await messages(StreamName.dead)) > 0);
    });
    await gateway.stop();
  });

  test("a job of another run or with impossible limits goes to the stream DEAD and is never played", async () => {
    const before = await messages(StreamName.dead);
    const bad = [
      job("other-1"),
      job(""),
      job("a.b"),
      job("rules-1", {
        limits: { maxTurns: 3, maxContextTokens: 256, deadlineMs: 2 ** 32 - 1, maxAttempts: 1 },
      }),
      job("rules-1", { limits: { maxTurns: 0, maxContextTokens: 256, deadlineMs: 100, maxAttempts: 1 } }),
      job("rules-1", { sampling: { temperature: Number.NaN, topP: 1, maxNewTokens: 8 } }),
      job("rules-1", { lowestVersion: 2, highestVersion: 1 }),
      job("rules-1", { task: { id: "x", rowJson: "[1]" } }),
    ];
    for (const each of bad)
      await publishBytes(bus, subjects.rolloutJob("rules-1"), toBinary(RolloutJobSchema, each), undefined);
    await eventually(
      "the dead letters",
      async () => (await messages(StreamName.dead)) === before + bad.length,
    );
    assert.equal(await lastOf("rules-1"), undefined);
  });

  test("a job with an impossible name of its tokenizer's folder ends as an episode and is not delivered again", async () => {
    for (const [run, tokenizerPath] of [
      ["named-1", "x".repeat(10_000)],
      ["named-2", "a\u0000b"],
    ] as const) {
      // An unknown digest, as the files of a known one would not be read again.
      const bad = job(run, { tokenizerPath, tokenizerDigest: "0".repeat(64) });
      await publishBytes(bus, subjects.rolloutJob(run), toBinary(RolloutJobSchema, bad), undefined);
      const ended = await eventually(`the end of ${run}`, () => lastOf(run));
      assert.equal(ended.outcome, Outcome.INFRA_FAILED);
      assert.match(ended.reason, /must hold tokenizer\.json/);
      await eventually("its job to be gone", async () => (await jobsOf(run)) === 0);
    }
  });

  test("undecodable states of runs and replicas stop no rollout", async () => {
    const states = await bus.keyValue.open(BucketName.runState);
    const replicas = await bus.keyValue.open(BucketName.replicas);
    const state = create(RunStateSchema, { runId: RUN, phase: 3 });
    const replica = create(ReplicaStateSchema, {
      model: "model-1",
      replica: "r",
      versions: [0],
      capacity: 1,
    });
    await withInputs(badBodies(RunStateSchema, state), 100, async (bodies) => {
      for (const [index, body] of bodies.entries()) await states.put(`state-${index}`, body);
    });
    await withInputs(badBodies(ReplicaStateSchema, replica), 100, async (bodies) => {
      for (const [index, body] of bodies.entries()) await replicas.put(`model-1.r${index}`, body);
    });
    await publishBytes(
      bus,
      subjects.rolloutJob("after-2"),
      toBinary(RolloutJobSchema, job("after-2")),
      undefined,
    );
    assert.ok(await eventually("the good one", () => lastOf("after-2")));
    // A rollout that waits for a model with undecodable replicas ends when a working replica comes.
    const waiting = job("model-1", {
      scriptedPolicy: undefined,
      limits: { maxTurns: 1, maxContextTokens: 512, deadlineMs: 20_000, maxAttempts: 1 },
    });
    await publishBytes(bus, subjects.rolloutJob("model-1"), toBinary(RolloutJobSchema, waiting), undefined);
    const gateway = new FakeGateway(bus, {
      model: "model-1",
      replica: "sound",
      behave: () => ({ kind: "answer", tokenIds: [5, 6] }),
      versions: [0],
    });
    await gateway.report();
    const ended = await eventually("the rollout of the sound replica", () => lastOf("model-1"), {
      deadlineMs: 20_000,
    });
    assert.ok(ended.outcome === Outcome.TRUNCATED || ended.outcome === Outcome.COMPLETED, ended.reason);
    await gateway.stop();
  });

  test("a replica with undecodable answers does not make agents fail, as a working one answers instead", async () => {
    const subject = subjects.generate("model-2", "rubbish");
    const valid = create(GenerateReplySchema, {
      kind: {
        case: "done",
        value: {
          tokenIds: [5, 6],
          logprobs: [-1, -1],
          finishReason: 1,
          versions: [{ version: 0, tokenCount: 2 }],
        },
      },
    });
    await withInputs(badBodies(GenerateReplySchema, valid), 60, async (bodies) => {
      let next = 0;
      const rubbish = bus.connection.subscribe(subject, {
        callback: (_, message) => void message.respond(bodies[next++ % bodies.length]!),
      });
      const broken = new FakeGateway(bus, {
        model: "model-2",
        replica: "rubbish",
        behave: () => ({ kind: "silence" }),
      });
      await broken.report([0]);
      const sound = new FakeGateway(bus, {
        model: "model-2",
        replica: "sound",
        behave: () => ({ kind: "answer", tokenIds: [5, 6] }),
      });
      await sound.report([0]);
      const limits = { maxTurns: 1, maxContextTokens: 512, deadlineMs: 20_000, maxAttempts: 1 };
      for (let task = 0; task < bodies.length; task++) {
        const slot = { split: "train", step: 1, task, index: 0 };
        const each = job("model-2", { slot, limits, scriptedPolicy: undefined });
        await publishBytes(bus, subjects.rolloutJob("model-2"), toBinary(RolloutJobSchema, each), undefined);
      }
      await eventually("every rollout", async () => (await jobsOf("model-2")) === 0, {
        deadlineMs: 60_000,
      });
      rubbish.unsubscribe();
      await Promise.all([broken.stop(), sound.stop()]);
      const outcomes = new Set<Outcome>();
      const { state } = await bus.manager.streams.info(StreamName.episodes);
      for (let sequence = state.first_seq; sequence <= state.last_seq; sequence++) {
        const found = await bus.manager.streams
          .getMessage(StreamName.episodes, { seq: sequence })
          .catch(() => null);
        if (found?.subject === subjects.rolloutFinished("model-2"))
          outcomes.add(fromBinary(EpisodeSchema, found.data).outcome);
      }
      assert.ok(outcomes.size > 0 && !outcomes.has(Outcome.AGENT_FAILED), [...outcomes].join());
    });
  });

  test("every request to validate a run is answered or goes to the stream DEAD", async () => {
    const subject = subjects.validate(ValidatingService.agentRollout);
    const file = {
      name: "x",
      model: {
        init: {
          architecture: "qwen3",
          hiddenSize: 64,
          numLayers: 1,
          numHeads: 4,
          tokenizer: { files: { "tokenizer.json": "{}" } },
        },
      },
      dataset: { train: { source: "environment", environment: "frozen_lake", seeds: { from: 0, to: 10 } } },
      agent: { name: "frozen_lake", config: {} },
      rollout: { tasksPerStep: 1, groupSize: 2 },
      trainer: { steps: 1, optimizer: { kind: "adamw", learningRate: 0.001 } },
    };
    const valid = create(ValidateRequestSchema, { configJson: JSON.stringify(file) });
    await withInputs(badBodies(ValidateRequestSchema, valid), 150, async (bodies) => {
      const before = await messages(StreamName.dead);
      let answered = 0;
      const inbox = bus.connection.subscribe("_INBOX.answers.validate", { callback: () => void answered++ });
      for (const body of bodies) bus.connection.publish(subject, body, { reply: "_INBOX.answers.validate" });
      await eventually("an end of each request", async () => {
        return answered + (await messages(StreamName.dead)) - before === bodies.length;
      });
      inbox.unsubscribe();
    });
  });
});
