import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  BucketName,
  openBucket,
  publishBytes,
  StreamName,
  subjects,
  ValidatingService,
} from "@hone/messaging";
import { startBus, type TestBus } from "@hone/messaging/testing";
import { ScoreReplySchema, ScoreRequestSchema } from "@hone/proto-gen/judge";
import { EpisodeSchema, Outcome, ScoredEpisodeSchema } from "@hone/proto-gen/rollout";
import { RunStateSchema, ValidateReplySchema, ValidateRequestSchema } from "@hone/proto-gen/run";
import { type RunningService, startService } from "@hone/service-kit";
import { silentLogger } from "@hone/telemetry";
import { eventually } from "@hone/testing";
import { badBodies, withInputs } from "@hone/testing/fuzz";
import { readJudgeConfig } from "./config.ts";
import { judgeService } from "./service.ts";

const RUN = "fuzz-1";
const valid = create(EpisodeSchema, {
  runId: RUN,
  slot: { split: "train", step: 3, task: 1, index: 0 },
  attempt: 1,
  outcome: Outcome.COMPLETED,
  environmentReturn: 1,
  turns: [{ index: 0, finishReason: "stop", infoJson: '{"isValid":true}' }],
  samples: [{ tokenIds: [1, 2, 3], lossMask: new Uint8Array([0, 1, 1]), logprobs: [-0.5, -0.25] }],
});

describe("judge and bad input", { timeout: 120_000 }, () => {
  let bus: TestBus;
  let service: RunningService;
  before(async () => {
    bus = await startBus();
    const states = await openBucket(bus, BucketName.runState, RunStateSchema);
    const configJson = '{"judge":[{"kind":"environment","weight":1},{"kind":"format","weight":0.5}]}';
    for (const runId of [RUN, "after-1"])
      await states.put(runId, create(RunStateSchema, { runId, configJson }));
    service = await startService(judgeService, {
      config: readJudgeConfig({ HONE_NATS_URL: bus.server.url }),
      logger: silentLogger(),
    });
    await service.becameReady;
  });
  after(async () => {
    await service?.stop();
    await bus?.close();
  });

  const countOf = async (stream: StreamName) => (await bus.manager.streams.info(stream)).state.messages;
  const isDone = async () => {
    const { num_pending, num_ack_pending } = await bus.manager.consumers.info(StreamName.episodes, "judge");
    return num_pending + num_ack_pending === 0;
  };

  test("every episode gets a finite reward or goes to the stream DEAD, and the next good one is scored", async () => {
    await withInputs(badBodies(EpisodeSchema, valid), 400, async (bodies) => {
      for (const body of bodies) await publishBytes(bus, subjects.rolloutFinished(RUN), body, undefined);
      await eventually("every episode", isDone, { deadlineMs: 20_000 });
      await publishBytes(
        bus,
        subjects.rolloutFinished("after-1"),
        toBinary(EpisodeSchema, { ...valid, runId: "after-1" }),
        undefined,
      );
      await eventually("the good one", isDone);
      const last = await bus.manager.streams.getMessage(StreamName.episodes, {
        last_by_subj: subjects.rolloutScored("after-1"),
      });
      assert.equal(fromBinary(ScoredEpisodeSchema, last!.data).reward, 1.5);
      const scored = (await countOf(StreamName.episodes)) - bodies.length - 2;
      assert.ok(scored > 0 && (await countOf(StreamName.dead)) > 0);
      for (let sequence = 1; sequence <= bodies.length * 2; sequence++) {
        const message = await bus.manager.streams
          .getMessage(StreamName.episodes, { seq: sequence })
          .catch(() => null);
        if (message?.subject !== subjects.rolloutScored(RUN)) continue;
        const { reward, finished } = fromBinary(ScoredEpisodeSchema, message.data);
        assert.ok(Number.isFinite(reward), `${reward}`);
        assert.equal(finished?.runId, RUN);
      }
    });
  });

  test("every request is answered or goes to the stream DEAD, and the next good one is answered", async () => {
    const request = create(ScoreRequestSchema, { episodes: [valid] });
    const check = create(ValidateRequestSchema, {
      configJson: JSON.stringify({ judge: [{ kind: "environment" }] }),
    });
    const ask = (subject: string, body: Uint8Array) =>
      bus.connection.request(subject, body, { timeout: 5_000 });
    const askAll = async (subject: string, all: Uint8Array[]) => {
      // No client can send more: the server ends its connection.
      const limit = bus.connection.info?.max_payload ?? 0;
      const bodies = all.filter(({ length }) => length <= limit);
      assert.ok(bodies.length > all.length / 2);
      const before = await countOf(StreamName.dead);
      let answered = 0;
      const inbox = bus.connection.subscribe(`_INBOX.answers.${subject}`, {
        callback: () => void answered++,
      });
      for (const body of bodies)
        bus.connection.publish(subject, body, { reply: `_INBOX.answers.${subject}` });
      await eventually(`an end of each request on ${subject}`, async () => {
        return answered + (await countOf(StreamName.dead)) - before === bodies.length;
      });
      inbox.unsubscribe();
    };
    await withInputs(badBodies(ScoreRequestSchema, request), 200, (bodies) =>
      askAll(subjects.judgeScore(), bodies),
    );
    const validate = subjects.validate(ValidatingService.judge);
    await withInputs(badBodies(ValidateRequestSchema, check), 200, (bodies) => askAll(validate, bodies));
    const scored = await ask(subjects.judgeScore(), toBinary(ScoreRequestSchema, request));
    assert.equal(fromBinary(ScoreReplySchema, scored.data).scored[0]?.reward, 1.5);
    const checked = await ask(validate, toBinary(ValidateRequestSchema, check));
    assert.deepEqual(fromBinary(ValidateReplySchema, checked.data).problems, []);
  });
});
